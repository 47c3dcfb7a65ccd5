//! Prints the streaming kernel of a `.stencil` file for a plan in JSON.
use warpwright_cuda::stencil::{dsl, stream};
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&arguments[1]).expect("the stencil");
    let mut stencil = dsl::parse(&text).expect("a stencil");
    let plan: stream::Plan = serde_json::from_str(&arguments[2]).expect("a plan");
    stencil.reassociate = plan.reassociate;
    match stream::generate(&stencil, &plan) {
        Ok(kernel) => {
            print!("{}", kernel.source);
            eprintln!(
                "{} {:?} {:?}",
                kernel.shared_bytes, kernel.tile, kernel.cost
            );
        }
        Err(refusal) => eprintln!("refused: {refusal}"),
    }
}
