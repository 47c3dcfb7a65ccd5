//! In which folder is a program started that `posix_spawn` is to change the folder for?

use std::ffi::{c_char, c_int, c_void};

use warpwright_linkage::captured::kernel;

use crate::foreign::close;

/// The folder of the caller (`AT_FDCWD`).
pub const HERE: usize = libc::AT_FDCWD as isize as usize;

/// `posix_spawn_file_actions_t` of spawn.h, as far as it is used.
#[repr(C)]
struct Actions {
    room: c_int,
    count: c_int,
    first: *const Action,
}

/// `struct __spawn_action` of the C library's posix/spawn_int.h: what is done, and with what.
#[repr(C)]
struct Action {
    tag: u32,
    with: With,
}

#[repr(C)]
union With {
    /// Of one that opens, or the other one of `dup2` behind it.
    descriptors: [c_int; 2],
    path: *const c_char,
    all: [usize; 3],
}

const DUPLICATES: u32 = 1;
const OPENS: u32 = 2;
const CHANGES: u32 = 3;
const CHANGES_BY_DESCRIPTOR: u32 = 4;
const LAST_KNOWN: u32 = 6;

/// A folder by its descriptor.
pub struct Folder {
    pub descriptor: usize,
    is_own: bool,
}

impl Folder {
    /// The one that is changed into in the end; none where that cannot be told.
    ///
    /// # Safety
    /// Null, or what `posix_spawn` takes.
    pub unsafe fn of(actions: *const c_void) -> Option<Folder> {
        const HOW: usize = (libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
        let mut folder = Folder {
            descriptor: HERE,
            is_own: false,
        };
        let actions = actions.cast::<Actions>();
        let mut at = 0;
        // SAFETY: the caller's; each has what its tag says.
        unsafe {
            while !actions.is_null() && at < (*actions).count {
                let action = (*actions).first.add(at as usize);
                at += 1;
                let tag = (*action).tag;
                if tag > LAST_KNOWN {
                    return None;
                }
                if tag == CHANGES {
                    let path = (*action).with.path;
                    let from = folder.descriptor;
                    let opened = kernel(libc::SYS_openat, [from, path.addr(), HOW]);
                    if opened < 0 {
                        return None;
                    }
                    folder = Folder {
                        descriptor: opened as usize,
                        is_own: true,
                    };
                }
                if tag == CHANGES_BY_DESCRIPTOR {
                    let [descriptor, _] = (*action).with.descriptors;
                    if is_made(actions, at - 1, descriptor) {
                        return None;
                    }
                    folder = Folder {
                        descriptor: descriptor as usize,
                        is_own: false,
                    };
                }
            }
        }
        Some(folder)
    }
}

/// Is a descriptor made by one of the first actions?
///
/// # Safety
/// There are so many.
unsafe fn is_made(actions: *const Actions, count: c_int, descriptor: c_int) -> bool {
    let mut at = 0;
    // SAFETY: the caller's.
    unsafe {
        while at < count {
            let action = (*actions).first.add(at as usize);
            let [one, other] = (*action).with.descriptors;
            let tag = (*action).tag;
            if tag == OPENS && one == descriptor || tag == DUPLICATES && other == descriptor {
                return true;
            }
            at += 1;
        }
    }
    false
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_own {
            close(self.descriptor);
        }
    }
}
