//! The rules of the house that a test can hold: which room may use which, what documents may
//! cite, and where numbers about GPUs may stand. There is no code here, only `tests/`.
