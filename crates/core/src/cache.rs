//! The processor's cache, which cannot hold what thousands of connections have in flight. Who knows what it will need next has
//! it fetched meanwhile.

/// The bytes of a line.
const LINE: usize = 64;

/// Has the memory of a value fetched, but not what it points to.
#[inline(always)]
#[allow(clippy::inline_always)] // it is a few instructions
pub fn prefetch<T: ?Sized>(value: &T) {
    let start = core::ptr::from_ref(value).cast::<u8>();
    (0..size_of_val(value)).step_by(LINE).for_each(|place| fetch(start.wrapping_add(place)));
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
