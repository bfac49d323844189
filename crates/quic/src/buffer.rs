//! The bytes of one direction of a flow, by offset, in chunks of equal size: holes cost nothing but their chunk.

use std::collections::VecDeque;
use std::ops::Range;

/// Bytes a chunk holds. A flow that carries anything holds at least one.
const CHUNK: usize = 32 << 10;

/// Spare chunks a buffer keeps for reuse.
const SPARE: usize = 4;

/// Bytes from a moving start on. The owner decides which offsets are in use; the session's windows bound them.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Index of the first chunk: offsets below `first * CHUNK` were released.
    first: u64,
    /// `None` where nothing was written yet.
    chunks: VecDeque<Option<Box<[u8]>>>,
    spare: Vec<Box<[u8]>>,
}

/// Index of the chunk an offset lies in, and where in it.
#[allow(clippy::cast_possible_truncation)] // the remainder is below CHUNK
const fn locate(offset: u64) -> (u64, usize) {
    (offset / CHUNK as u64, (offset % CHUNK as u64) as usize)
}

impl Buffer {
    /// Stores bytes at an offset. What lies below the released part is dropped.
    pub(crate) fn write(&mut self, mut offset: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (index, at) = locate(offset);
            let (part, rest) = bytes.split_at(bytes.len().min(CHUNK - at));
            if let Some(slot) = index.checked_sub(self.first).and_then(|slot| usize::try_from(slot).ok()) {
                if slot >= self.chunks.len() {
                    self.chunks.resize_with(slot + 1, || None);
                }
                let chunk =
                    self.chunks[slot].get_or_insert_with(|| self.spare.pop().unwrap_or_else(|| vec![0; CHUNK].into()));
                chunk[at..at + part.len()].copy_from_slice(part);
            }
            offset += part.len() as u64;
            bytes = rest;
        }
    }

    /// The stored bytes of a range, in pieces. A piece is empty where nothing was stored: the owner asks for no such range.
    pub(crate) fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = &[u8]> {
        let mut offset = range.start;
        std::iter::from_fn(move || {
            if offset >= range.end {
                return None;
            }
            let (index, at) = locate(offset);
            let wanted = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(CHUNK - at);
            offset += wanted as u64;
            let slot = index.checked_sub(self.first).and_then(|slot| usize::try_from(slot).ok());
            let chunk = slot.and_then(|slot| self.chunks.get(slot)).and_then(Option::as_deref);
            Some(chunk.map_or(&[] as &[u8], |chunk| &chunk[at..at + wanted]))
        })
    }

    /// Forgets everything below an offset.
    pub(crate) fn release(&mut self, offset: u64) {
        let (index, _) = locate(offset);
        while self.first < index {
            match self.chunks.pop_front() {
                Some(Some(chunk)) if self.spare.len() < SPARE => self.spare.push(chunk),
                Some(_) => {}
                None => {
                    self.first = index;
                    return;
                }
            }
            self.first += 1;
        }
    }

    /// Forgets everything, for good.
    pub(crate) fn clear(&mut self) {
        self.chunks = VecDeque::new();
        self.spare = Vec::new();
    }

    /// Memory in use for chunks.
    pub(crate) fn memory(&self) -> usize {
        (self.chunks.iter().flatten().count() + self.spare.len()) * CHUNK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &Buffer, range: Range<u64>) -> Vec<u8> {
        buffer.pieces(range).flatten().copied().collect()
    }

    #[test]
    fn bytes_come_back_whatever_the_order_of_writing() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
        let mut buffer = Buffer::default();
        for start in (0..bytes.len()).step_by(1000).rev() {
            buffer.write(start as u64, &bytes[start..start + 1000]);
        }
        assert_eq!(read(&buffer, 0..200_000), bytes);
        buffer.release(150_000);
        assert_eq!(read(&buffer, 150_000..200_000), bytes[150_000..]);
        buffer.write(0, &bytes);
        assert_eq!(read(&buffer, 150_000..200_000), bytes[150_000..]);
    }

    #[test]
    fn scattered_bytes_cost_what_lies_between_them() {
        let mut buffer = Buffer::default();
        let (from, pages) = (5_000_000_u64, 100_u32);
        buffer.release(from);
        for page in 0..=pages {
            buffer.write(from + u64::from(page) * CHUNK as u64, &[1]);
        }
        let span = pages as usize * CHUNK + 1;
        assert!(buffer.memory() <= span + 2 * CHUNK, "{}", buffer.memory());
        buffer.release(from + u64::from(pages) * CHUNK as u64);
        assert!(buffer.memory() <= (1 + SPARE) * CHUNK, "{}", buffer.memory());
    }

    #[test]
    fn what_was_released_before_it_came_is_not_kept() {
        let mut buffer = Buffer::default();
        buffer.write(0, &[1]);
        buffer.release(10 * CHUNK as u64);
        let spare = buffer.memory();
        assert_eq!(spare, CHUNK);
        buffer.write(5 * CHUNK as u64, &[1]);
        assert_eq!(buffer.memory(), spare);
        // The spare chunk is used again, and nothing lies before it.
        buffer.write(10 * CHUNK as u64, &[1]);
        assert_eq!((buffer.memory(), buffer.chunks.len()), (CHUNK, 1));
    }

    #[test]
    fn memory_follows_what_is_held() {
        let mut buffer = Buffer::default();
        for start in 0..100 {
            buffer.write(start * CHUNK as u64, &[1; CHUNK]);
            buffer.release(start * CHUNK as u64);
            assert!(buffer.memory() <= (2 + SPARE) * CHUNK);
        }
        buffer.release(u64::MAX);
        buffer.clear();
        assert_eq!(buffer.memory(), 0);
    }
}
