//! Streams and events.

use std::ffi::{c_int, c_uint, c_ulonglong};

use super::{calls, put};
use crate::abi::{CAPTURE_UNMATCHED, Handle};
use crate::state::{Answer, state};

/// # Safety
/// An output of this type.
unsafe fn make(to: *mut Handle) -> Answer {
    let handle = state().clock.handle();
    // SAFETY: as the caller says.
    unsafe { put(to, handle) }
}

fn record(event: Handle, stream: Handle) -> Answer {
    let mut state = state();
    state.clock.record(event);
    state.graphs.record(event as usize, stream as usize);
    Ok(())
}

calls! {
    fn cudaStreamCreate(to: *mut Handle) {
        // SAFETY: an output of this type.
        unsafe { make(to) }
    }

    fn cudaStreamCreateWithFlags(to: *mut Handle, _flags: c_uint) {
        // SAFETY: as above.
        unsafe { make(to) }
    }

    fn cudaStreamCreateWithPriority(to: *mut Handle, _flags: c_uint, _priority: c_int) {
        // SAFETY: as above.
        unsafe { make(to) }
    }

    fn cudaStreamDestroy(_stream: Handle) { Ok(()) }

    fn cudaStreamSynchronize | cudaStreamSynchronize_ptsz(_stream: Handle) { state().meet() }

    fn cudaStreamQuery | cudaStreamQuery_ptsz(_stream: Handle) { state().meet() }

    fn cudaStreamWaitEvent | cudaStreamWaitEvent_ptsz(stream: Handle, event: Handle, _flags: c_uint) {
        state().graphs.wait(stream as usize, event as usize);
        Ok(())
    }

    fn cudaStreamGetPriority | cudaStreamGetPriority_ptsz(_stream: Handle, priority: *mut c_int) {
        // SAFETY: an output of this type.
        unsafe { put(priority, 0) }
    }

    fn cudaStreamGetFlags | cudaStreamGetFlags_ptsz(_stream: Handle, flags: *mut c_uint) {
        // SAFETY: an output of this type.
        unsafe { put(flags, 0) }
    }

    fn cudaStreamGetDevice | cudaStreamGetDevice_ptsz(_stream: Handle, device: *mut c_int) {
        // SAFETY: an output of this type.
        unsafe { put(device, 0) }
    }

    fn cudaStreamGetId | cudaStreamGetId_ptsz(stream: Handle, id: *mut c_ulonglong) {
        // SAFETY: an output of this type.
        unsafe { put(id, stream as c_ulonglong) }
    }

    fn cudaStreamSetAttribute | cudaStreamSetAttribute_ptsz(_stream: Handle, _attribute: c_int, _value: Handle) { Ok(()) }

    fn cudaStreamBeginCapture | cudaStreamBeginCapture_ptsz(stream: Handle, _mode: c_int) {
        let mut state = state();
        let graph = state.clock.handle() as usize;
        state.graphs.begin(stream as usize, graph);
        Ok(())
    }

    fn cudaStreamEndCapture | cudaStreamEndCapture_ptsz(stream: Handle, graph: *mut Handle) {
        let ended = state().graphs.end(stream as usize).ok_or(CAPTURE_UNMATCHED)?;
        // SAFETY: an output of this type.
        unsafe { put(graph, ended as Handle) }
    }

    fn cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz(stream: Handle, status: *mut c_int) {
        let captured = state().graphs.captured(stream as usize).is_some();
        // SAFETY: an output of this type.
        unsafe { put(status, c_int::from(captured)) }
    }

    fn cudaThreadExchangeStreamCaptureMode(_mode: *mut c_int) { Ok(()) }

    fn cudaEventCreate(to: *mut Handle) {
        // SAFETY: an output of this type.
        unsafe { make(to) }
    }

    fn cudaEventCreateWithFlags(to: *mut Handle, _flags: c_uint) {
        // SAFETY: as above.
        unsafe { make(to) }
    }

    fn cudaEventDestroy(_event: Handle) { Ok(()) }

    fn cudaEventRecord | cudaEventRecord_ptsz(event: Handle, stream: Handle) { record(event, stream) }

    fn cudaEventRecordWithFlags | cudaEventRecordWithFlags_ptsz(event: Handle, stream: Handle, _flags: c_uint) {
        record(event, stream)
    }

    fn cudaEventSynchronize(_event: Handle) { state().meet() }

    fn cudaEventQuery(_event: Handle) { state().meet() }

    fn cudaEventElapsedTime(to: *mut f32, start: Handle, end: Handle) {
        let elapsed = state().clock.between(start, end)?;
        // SAFETY: an output of this type.
        unsafe { put(to, elapsed) }
    }
}
