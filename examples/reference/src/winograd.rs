//! Convolution with 3 x 3 filters by its definition.

use rayon::prelude::*;

use crate::data::{Data, Output, floats};

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    let (images, outputs) = (data.param("images")?, data.param("outputs")?);
    let channels = data.param("channels")?;
    let (height, width) = (4 * data.param("rows")?, 4 * data.param("columns")?);
    let (input, filter) = (data.floats("in")?, data.floats("filter")?);
    let pixel = |at: usize| {
        let (x, y) = (at % width, at / width % height);
        let plane = at / (width * height);
        let (output, image) = (plane % outputs, plane / outputs);
        let mut sum = 0.0;
        for channel in 0..channels {
            let rows = (image * channels + channel) * (height + 2);
            let weights = &filter[(output * channels + channel) * 9..][..9];
            for (k, weight) in weights.iter().enumerate() {
                sum += weight * input[(rows + y + k / 3) * (width + 2) + x + k % 3];
            }
        }
        sum
    };
    let pixels = (0..images * outputs * height * width).into_par_iter();
    Some(vec![floats("out", pixels.map(pixel).collect())])
}
