//! What the figures come from. A table row names one of these.

use crate::fact::{Confidence, Provenance};

/// A group of figures that the vendor states.
const fn documented(source: &'static str) -> Provenance {
    Provenance {
        confidence: Confidence::Documented,
        source,
    }
}

// Launch limits.
pub(super) const LIMITS: Provenance = documented(
    "CUDA Toolkit 13.5, cuda_occupancy.h and cccl cuda/__device/arch_traits.h; CUDA Programming Guide 13, \
     Compute Capabilities",
);
pub(super) const LIMITS_KEPLER: Provenance = documented(
    "CUDA Toolkit 13.5, cuda_occupancy.h; CUDA C Programming Guide 10.2, Compute Capabilities",
);
pub(super) const LIMITS_MAXWELL: Provenance =
    documented("CUDA Toolkit 13.5, cuda_occupancy.h and cccl cuda/__device/arch_traits.h");
pub(super) const LIMITS_FERMI: Provenance = documented(
    "CUDA C Programming Guide 4.2, appendix F; CUDA Occupancy Calculator spreadsheet, GPU Data",
);
pub(super) const LIMITS_TESLA: Provenance = documented(
    "CUDA C Programming Guide 3.2, appendix G; CUDA Occupancy Calculator spreadsheet, GPU Data; You & Tsai \
     2011, Table 2",
);

// Throughputs. The guides' tables count results per clock and SM.
pub(super) const GUIDE_3: &str = "CUDA C Programming Guide 3.2, 5.4.1";
pub(super) const GUIDE_6: &str = "CUDA C Programming Guide 6.0, Table 2";
pub(super) const GUIDE_10: &str = "CUDA C Programming Guide 10.2, Table 3";
pub(super) const GUIDE_12: &str =
    "CUDA C++ Programming Guide 12, Throughput of Native Arithmetic Instructions";
pub(super) const BEST_13: &str =
    "CUDA C++ Best Practices Guide 13, Throughput of Native Arithmetic Instructions";
pub(super) const WHITEPAPER_FERMI: &str = "NVIDIA Fermi whitepaper";
pub(super) const WHITEPAPER_KEPLER: &str = "NVIDIA Kepler GK110 whitepaper";
pub(super) const WHITEPAPER_MAXWELL: &str = "NVIDIA GeForce GTX 980 whitepaper";
pub(super) const WHITEPAPER_TURING: &str = "NVIDIA Turing whitepaper";
pub(super) const WHITEPAPER_A100: &str = "NVIDIA A100 whitepaper";
pub(super) const WHITEPAPER_GA102: &str = "NVIDIA Ampere GA102 whitepaper";
pub(super) const WHITEPAPER_ADA: &str = "NVIDIA Ada whitepaper";
pub(super) const WHITEPAPER_H100: &str = "NVIDIA H100 whitepaper";
pub(super) const WHITEPAPER_RTX_BLACKWELL: &str = "NVIDIA RTX Blackwell whitepaper";
pub(super) const BLACKWELL_TUNING: &str = "NVIDIA Blackwell Tuning Guide";
pub(super) const GUIDE_13_CACHE: &str =
    "CUDA Programming Guide 13, Compute Capabilities, unified data cache";
pub(super) const ORIN_BRIEF: &str = "NVIDIA Jetson AGX Orin technical brief";

// Measurements.
pub(super) const PROBE: &str = "crates/target/probe/h200.txt (H200, driver 580)";
pub(super) const WONG: &str =
    "Wong et al. 2010, Demystifying GPU microarchitecture through microbenchmarking (GTX 280)";
pub(super) const MEI_CHU: &str =
    "Mei & Chu 2017, Dissecting GPU memory hierarchy through microbenchmarking (GTX 560 Ti)";
pub(super) const ARAFA_KEPLER: &str =
    "Arafa et al. 2019, arXiv:1905.08778 (Kepler), as tabulated in LANL's PPT-GPU";
pub(super) const ARAFA_MAXWELL: &str =
    "Arafa et al. 2019, arXiv:1905.08778 (Maxwell), as tabulated in LANL's PPT-GPU";
pub(super) const ARAFA_TURING: &str =
    "Arafa et al. 2019, arXiv:1905.08778 (TITAN RTX), as tabulated in LANL's PPT-GPU";
pub(super) const JIA_TURING: &str = "Jia et al. 2019, arXiv:1903.07486 (T4)";
pub(super) const ABDELKHALIK: &str = "Abdelkhalik et al. 2022, arXiv:2208.11174 (A100)";
pub(super) const LUO_A100: &str = "Luo et al. 2024, arXiv:2402.13499 (A100)";
pub(super) const LUO_4090: &str = "Luo et al. 2024, arXiv:2402.13499 (RTX 4090)";
pub(super) const ACCEL_SIM_2060: &str = "Accel-Sim tuner, GPGPU-Sim configuration SM75_RTX2060";
pub(super) const ACCEL_SIM_A100: &str =
    "Accel-Sim tuner, GPGPU-Sim configuration NVIDIA_A100_80GB_PCIe";
pub(super) const ACCEL_SIM_3070: &str = "Accel-Sim tuner, GPGPU-Sim configuration SM86_RTX3070";
pub(super) const ACCEL_SIM_ORIN: &str = "Accel-Sim tuner, GPGPU-Sim configuration SM87_ORIN";
pub(super) const DEWING: &str = "markdewing/AI_kernels on GitHub, latency/README.md";

// Boards.
pub(super) const DATASHEET: &str = "NVIDIA datasheet or product page";
pub(super) const FORUM_ORIN: &str =
    "device properties of an AGX Orin, NVIDIA developer forum, topic 289936";
pub(super) const DEVICE_QUERY: &str = "device attributes as the driver reports them";
