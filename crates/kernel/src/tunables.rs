//! Parameters of a controller in the kernel: `struct tunables` of its object, one 64-bit word a parameter.
//!
//! Names, ranges and defaults are those of the controller's row in the registry of `manypath-cc`, but of those that only the kernel has.
//! Where a word is, the object's own type information says (docs/kernel-maps.md).

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use manypath_core::{AlgorithmSpec, Parameter, SpecError};

use crate::Object;
use crate::error::Error;
use crate::loader::Instance;
use crate::maps::{PinnedMap, ZERO};
use crate::pins;
use crate::request::Setting;

/// The map of parameters, by its name in the object.
pub(crate) const TUNABLES_SECTION: &str = ".data.tunables";
/// Words of parameters that are in millionths end so.
const MILLIONTHS: &str = "_ppm";
const MILLION: f64 = 1e6;

/// Parameters of which the programs take less than the registry: controller, parameter, and the most.
const LIMITS: &[(&str, &str, u64)] = &[
    // MAX_PERIOD of bpf/mp_ol.h: records have a place in the subflow's state.
    ("mp-ol", "n", 8),
];

/// Parameters that window-based controllers have in the kernel and nowhere else (bpf/window_control.h).
const SENDING: &[Parameter] = &[Parameter {
    name: "pacing",
    default: "on",
    range: "on or off",
    meaning: "whether windows are spread over a round trip, where the shortest is longer than 2 ms; subflows that are paced remain so",
}];

/// A parameter's word.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    name: String,
    offset: usize,
}

/// Changes parameters of a controller that is loaded: all, or none if one is wrong.
pub(crate) fn set(instance: &Instance, settings: &[Setting]) -> Result<(), Error> {
    let Some((map, layout)) = loaded(instance)? else {
        return Layout::none(instance.object.name).write(settings, &mut []);
    };
    let mut bytes = map.bytes(&ZERO)?.unwrap_or_default();
    layout.write(settings, &mut bytes)?;
    map.put(&ZERO, &bytes)
}

/// Parameters of a controller that is loaded.
pub(crate) fn get(instance: &Instance) -> Result<Vec<Setting>, Error> {
    let Some((map, layout)) = loaded(instance)? else { return Ok(Vec::new()) };
    Ok(layout.settings(&map.bytes(&ZERO)?.unwrap_or_default()))
}

/// The map of a loaded controller's parameters and their layout, as the kernel has it: the controller may have been loaded
/// by another version of this program.
fn loaded(instance: &Instance) -> Result<Option<(PinnedMap, Layout)>, Error> {
    if !PinnedMap::exists(&instance.name, pins::TUNABLES) {
        return Ok(None);
    }
    let map = PinnedMap::open(&instance.name, pins::TUNABLES)?;
    let id = map.id()?;
    let mut programs = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true));
    let Some(user) = programs.find(|program| program.map_ids.contains(&id)) else { return Ok(None) };
    let types = Btf::from_prog_id(user.id)
        .map_err(|error| Error::Refused { name: instance.name.clone(), source: error.into() })?;
    Ok(Some((map, Layout::read(instance.object.name, &types))))
}

/// The words of a controller's parameters.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The controller's name in the registry.
    controller: &'static str,
    words: Vec<Word>,
}

impl Layout {
    /// Reads the layout from an object's type information. A controller without parameters has no such structure.
    fn read(controller: &'static str, types: &Btf<'_>) -> Self {
        let mut words = Vec::new();
        if let Some(tunables) = types.type_by_name::<Struct<'_>>("tunables") {
            for member in tunables.iter() {
                let MemberAttr::Normal { offset: bits } = member.attr else { continue };
                let Some(name) = member.name.and_then(|name| name.to_str()) else { continue };
                words.push(Word { name: name.to_owned(), offset: bits as usize / 8 });
            }
        }
        Self { controller, words }
    }

    /// The layout in a controller's object.
    pub(crate) fn of_object(object: &Object) -> Result<Self, Error> {
        let types = Btf::from_raw(object.kernel_name, object.elf)
            .map_err(|error| Error::Refused { name: object.kernel_name.to_owned(), source: error.into() })?;
        Ok(types.map_or_else(|| Self::none(object.name), |types| Self::read(object.name, &types)))
    }

    /// The layout of a controller without parameters.
    const fn none(controller: &'static str) -> Self {
        Self { controller, words: Vec::new() }
    }

    fn find(&self, key: &str) -> Option<&Word> {
        let plain = key.replace('-', "_");
        let millionths = format!("{plain}{MILLIONTHS}");
        self.words.iter().find(|word| word.name == plain || word.name == millionths)
    }

    /// The rows of the parameters that the kernel has.
    fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        parameters(self.controller).filter(|row| self.find(row.name).is_some())
    }

    /// Checks settings: the kernel has them and takes as much, and they are in their ranges.
    pub(crate) fn check(&self, settings: &[Setting]) -> Result<(), Error> {
        if let Some((key, _)) = settings.iter().find(|(key, _)| self.find(key).is_none()) {
            return Err(self.not_in_kernel(key));
        }
        let algorithm = self.controller.to_owned();
        let mut own = AlgorithmSpec { name: algorithm.clone(), params: Vec::new() };
        for (key, value) in settings {
            match sending(key) {
                None => own.params.push((key.clone(), value.clone())),
                Some(row) if choices(row).contains(&value.as_str()) => {}
                Some(row) => {
                    let (key, value, range) = (key.clone(), value.clone(), row.range.to_owned());
                    return Err(SpecError::BadValue { algorithm, key, value, range }.into());
                }
            }
        }
        manypath_cc::create(&own, 0)?;
        settings.iter().try_for_each(|(key, value)| {
            let limit = LIMITS.iter().find(|(name, limited, _)| *name == self.controller && limited == key);
            match limit {
                Some((.., most)) if value.parse().is_ok_and(|number: u64| number > *most) => Err(Error::TooMuch {
                    controller: self.controller.to_owned(),
                    key: key.clone(),
                    value: value.clone(),
                    most: *most,
                }),
                _ => Ok(()),
            }
        })
    }

    /// Checks settings, and writes them into the structure's bytes. Nothing is written if one is wrong.
    pub(crate) fn write(&self, settings: &[Setting], bytes: &mut [u8]) -> Result<(), Error> {
        self.check(settings)?;
        let mut written = bytes.to_vec();
        for (key, value) in settings {
            let word = self.find(key).ok_or_else(|| self.not_in_kernel(key))?;
            let number = self.number(key, value, word)?;
            let place = written.get_mut(word.offset..word.offset + 8).ok_or_else(|| self.not_in_kernel(key))?;
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes.copy_from_slice(&written);
        Ok(())
    }

    /// Settings as they are in the structure's bytes, in the registry's order.
    fn settings(&self, bytes: &[u8]) -> Vec<Setting> {
        let held = self.parameters().filter_map(|row| {
            let word = self.find(row.name)?;
            let number = u64::from_ne_bytes(bytes.get(word.offset..word.offset + 8)?.try_into().ok()?);
            Some((row.name.to_owned(), text(row, word, number)))
        });
        held.collect()
    }

    fn not_in_kernel(&self, key: &str) -> Error {
        let names: Vec<&str> = self.parameters().map(|row| row.name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Error::NotInKernel { controller: self.controller.to_owned(), key: key.to_owned(), known }
    }

    /// The value as the word holds it.
    fn number(&self, key: &str, value: &str, word: &Word) -> Result<u64, Error> {
        let row = parameters(self.controller).find(|row| row.name == key);
        let row = row.ok_or_else(|| self.not_in_kernel(key))?;
        if let Some(place) = choices(row).iter().position(|choice| *choice == value) {
            return Ok(place as u64);
        }
        let scale = if word.name.ends_with(MILLIONTHS) { MILLION } else { 1.0 };
        let number: f64 = value.parse().map_err(|_| self.not_in_kernel(key))?;
        // Checked against the registry's range, which has no negative numbers.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        Ok((number * scale).round() as u64)
    }
}

/// The registry's rows of a controller's parameters, and those of the kernel alone.
fn parameters(controller: &str) -> impl Iterator<Item = &'static Parameter> {
    let algorithm = manypath_cc::algorithms().iter().find(|algorithm| algorithm.name == controller);
    algorithm.map_or(&[][..], |algorithm| algorithm.parameters).iter().chain(SENDING)
}

/// The row of a parameter of the kernel alone.
fn sending(key: &str) -> Option<&'static Parameter> {
    SENDING.iter().find(|row| row.name == key)
}

/// The words that a parameter takes, if its range is a list of words ("square or root"), in the order of their numbers: that of the
/// list, but that off is 0 and on is 1, as C has it.
fn choices(row: &Parameter) -> Vec<&'static str> {
    let mut words: Vec<&str> = row.range.split(", ").flat_map(|part| part.split(" or ")).collect();
    if words == ["on", "off"] {
        words.reverse();
    }
    if words.contains(&row.default) { words } else { Vec::new() }
}

/// A word as the registry writes it.
fn text(row: &Parameter, word: &Word, number: u64) -> String {
    let choice = usize::try_from(number).ok().and_then(|place| choices(row).get(place).copied());
    match choice {
        Some(choice) => choice.to_owned(),
        #[expect(clippy::cast_precision_loss, reason = "parameters are far below 2^53")]
        None if word.name.ends_with(MILLIONTHS) => (number as f64 / MILLION).to_string(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::ObjectBuilder;

    use super::*;
    use crate::objects;

    /// Parameters whose default in the kernel is another than the registry's, with what their controllers' names begin with;
    /// bpf/mpcc.h and bpf/tccc.h say why.
    const OTHER_DEFAULTS: &[(&str, &str, &str)] = &[
        ("mpcc-", "slow-start", "tolerant"),
        ("mpcc-", "brake", "lasting"),
        ("mpcc-", "queue", "heeded"),
        ("mpcc-", "bursts", "heeded"),
        ("mpcc-", "low", "near"),
        ("mpcc-", "timeout", "backoff"),
        ("tccc", "deviations", "1"),
    ];

    /// The parameters of an object as it is loaded when none are set.
    fn fresh(object: &Object) -> Vec<Setting> {
        let mut open = ObjectBuilder::default().open_memory(object.elf).unwrap();
        let mut maps = open.maps_mut();
        let Some(mut map) = maps.find(|map| map.name() == TUNABLES_SECTION) else { return Vec::new() };
        Layout::of_object(object).unwrap().settings(map.initial_value_mut().unwrap())
    }

    #[test]
    fn what_no_one_has_set_is_as_the_registry_says() {
        for object in objects() {
            let found = fresh(&object);
            assert_eq!(
                found.len(),
                Layout::of_object(&object).unwrap().words.len(),
                "{}: words without a row",
                object.name
            );
            for (key, value) in found {
                let row = parameters(object.name).find(|row| row.name == key).unwrap();
                let is_it = |(name, known, _): &&(&str, &str, &str)| object.name.starts_with(name) && *known == key;
                let expected = OTHER_DEFAULTS.iter().find(is_it).map_or(row.default, |(_, _, default)| default);
                assert_eq!(value, expected, "{}:{key}", object.name);
            }
        }
    }

    #[test]
    fn what_is_set_is_read_back() {
        for object in objects() {
            let layout = Layout::of_object(&object).unwrap();
            let mut bytes = vec![0; layout.words.iter().map(|word| word.offset + 8).max().unwrap_or(0)];
            for row in layout.parameters().collect::<Vec<_>>() {
                for choice in choices(row) {
                    let setting = (row.name.to_owned(), choice.to_owned());
                    layout.write(std::slice::from_ref(&setting), &mut bytes).unwrap();
                    assert!(layout.settings(&bytes).contains(&setting), "{}:{setting:?}", object.name);
                }
            }
        }
    }
}
