//! Self-contained HTML pages: no script, no outside reference.

use minijinja::{Environment, context};
use serde_json::Value;

use crate::ReportError;
use crate::svg;

/// The page of a document that a command printed with `--json`.
pub fn page(document: &Value) -> Result<String, ReportError> {
    let schema = document["schema"].as_str().unwrap_or("");
    let kind = match schema.split('/').next().unwrap_or("") {
        "warpwright.opt" | "warpwright.tune" => "opt",
        "warpwright.explain" => "explain",
        _ => return Err(ReportError::UnknownSchema(schema.into())),
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.add_template("page", include_str!("page.html"))?;
    environment.add_filter("curve", |values: Vec<u64>| {
        minijinja::Value::from_safe_string(svg::curve(&values))
    });
    let template = environment.get_template("page")?;
    Ok(template.render(context! { document, kind })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn opt_shows_every_candidate_and_marks_the_chosen_one() {
        let document = json!({
            "schema": "warpwright.opt/1", "input": "a<b>.cu", "gpu": "h200 (sm_90)",
            "kernels": [{
                "name": "k", "block": [256, 1, 1], "block_source": "option", "dynamic_smem": 0,
                "chosen": 1, "reason": "fewer registers", "notes": ["a note"],
                "candidates": [
                    {"recipe": "default", "resources": {"registers": 68, "spill_store_bytes": 0,
                     "spill_load_bytes": 0, "shared_bytes": 0}, "residency": null, "score": null},
                    {"recipe": "maxnreg(64)", "resources": null,
                     "residency": {"blocks": 4, "warps": 32, "percent": 50.0},
                     "score": {"relative_time": 0.9, "bound": "latency"}}
                ]}]
        });
        let html = page(&document).unwrap();
        assert!(html.contains("a&lt;b&gt;.cu"), "input names are escaped");
        assert_eq!(html.matches("<tr class=\"chosen\">").count(), 1);
        assert!(html.contains("maxnreg(64)") && html.contains("0.900") && html.contains("68"));
    }

    #[test]
    fn explain_has_the_curve() {
        let document = json!({
            "schema": "warpwright.explain/1", "input": "k.ptx", "gpu": "sm_90",
            "kernels": [{
                "kernel": "k", "block": [32, 1, 1], "block_source": "bound",
                "resources": {"registers": 10, "stack_bytes": 0, "shared_bytes": 0},
                "residency": null, "staircase": [{"blocks": 1, "warps": 8, "percent": 12.5, "regs": 255}],
                "pressure": {"peak_units": 7, "instructions": 2, "loop_depth": 0, "curve": [3, 7],
                    "peaks": [], "crossing": []}}]
        });
        let html = page(&document).unwrap();
        assert!(html.contains("<svg") && html.contains("255"));
    }

    #[test]
    fn other_documents_are_refused() {
        assert!(matches!(
            page(&json!({"schema": "x/1"})),
            Err(ReportError::UnknownSchema(_))
        ));
    }
}
