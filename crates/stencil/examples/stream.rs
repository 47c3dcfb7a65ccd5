//! Prints the streaming kernel of a `.stencil` or `.cu` file for a plan in JSON; without a plan, the best
//! plans by the model for an H200 at a size (the same for all parameters).
//!
//! `stream FILE PLAN` or `stream FILE SIZE`

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_stencil::evaluate::Sizes;
use warpwright_stencil::sweep::standalone;
use warpwright_stencil::{dsl, extract, stream};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, what] = &arguments[..] else {
        eprintln!("usage: stream FILE PLAN | stream FILE SIZE");
        std::process::exit(2);
    };
    let text = std::fs::read_to_string(file).expect("the stencil");
    let mut stencil = if file.ends_with(".cu") {
        let file = File::parse(Source::new(&**file, text)).expect("CUDA C");
        extract::extract(&file, extract::choose(&file, None).expect("a kernel")[0])
            .expect("a stencil")
    } else {
        dsl::parse(&text).expect("a stencil")
    };
    if let Ok(size) = what.parse::<i64>() {
        stencil.reassociate = true;
        let sizes: Sizes = stencil.parameters.values().map(|_| size).collect();
        let gpu = warpwright_target::lookup("h200").expect("a known GPU");
        let ranked = stream::search(&stencil, &gpu, &sizes, 12).unwrap_or_else(|e| panic!("{e}"));
        for r in ranked {
            let plan = serde_json::to_string(&r.plan).expect("JSON");
            let cost = &r.kernel.cost;
            println!("{:.3} ms ({}) {plan} {cost:?}", r.predicted_ms, r.bound);
        }
        return;
    }
    let plan: stream::Plan = serde_json::from_str(what).expect("a plan");
    stencil.reassociate = plan.reassociate;
    match stream::generate(&stencil, &plan) {
        Ok(kernel) => {
            print!("{}", standalone(&stencil, Some(&kernel.sweep), None));
            eprintln!(
                "{} {:?} {:?}",
                kernel.shared_bytes, kernel.tile, kernel.cost
            );
        }
        Err(refusal) => eprintln!("refused: {refusal}"),
    }
}
