//! The processor's cache, which cannot hold what thousands of connections have in flight. What is written or read in turn is
//! fetched when its neighbour is at hand, since the processor does not guess it among so much else.

/// The bytes of a line.
const LINE: usize = 64;

/// Has the first lines of a value fetched.
#[inline(always)]
#[allow(clippy::inline_always)] // it is a few instructions
pub fn prefetch<T>(value: &T, lines: usize) {
    let start = core::ptr::from_ref(value).cast::<u8>();
    (0..lines).for_each(|line| fetch(start.wrapping_add(line * LINE)));
}

/// Has the line fetched in which the value begins that stands so many places after this one, or will. Where a ring begins
/// anew it is another one, which costs nothing but that.
#[inline(always)]
#[allow(clippy::inline_always)] // it is one instruction
pub fn prefetch_after<T>(value: &T, places: usize) {
    fetch(core::ptr::from_ref(value).wrapping_add(places).cast());
}

#[inline(always)]
#[allow(clippy::inline_always)] // it is one instruction
fn fetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction is part of every such processor, reads no value and faults at no address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
