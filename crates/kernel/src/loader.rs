//! Loading and unloading controllers.
//!
//! Registering comes last: whatever fails before leaves no trace. A controller that is registered stays when the loader ends,
//! and so do its pins (`pins`), by which alone it is found again: what others have registered is theirs. Unregistering takes its
//! name away; connections that use it go on with it, and its maps live as long as they do.

use libbpf_rs::{ErrorKind, MapCore as _, MapType, ObjectBuilder, OpenObject, PrintLevel};

use crate::error::Error;
use crate::maps::{PinnedMap, ZERO};
use crate::request::{Loaded, Request, Setting, Unloaded};
use crate::tunables::{self, Layout, TUNABLES_SECTION};
use crate::{Object, default, doctor, objects, pins, sysctl};

/// The longest name that the kernel takes (`TCP_CA_NAME_MAX` and its zero).
const MAX_NAME: usize = 15;

/// A controller as it is, or is to be, in the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// The name that sockets take it by.
    pub(crate) name: String,
    pub(crate) object: Object,
}

/// Loads controllers: all of them, or none.
///
/// # Errors
/// If one is unknown or loaded already, a parameter is wrong, or the kernel refuses.
pub fn load(request: &Request) -> Result<Loaded, Error> {
    let mut wanted = Vec::new();
    for spec in &request.controllers {
        let object = object(&spec.name)?;
        let name = request.name.as_deref().unwrap_or(object.kernel_name);
        let settings: Vec<Setting> = spec.params.iter().chain(&request.settings).cloned().collect();
        Layout::of_object(&object)?.check(&settings)?;
        if wanted.iter().any(|(instance, _): &(Instance, _)| instance.name == name) {
            return Err(Error::Twice(name.to_owned()));
        }
        wanted.push((Instance { name: checked(name)?.to_owned(), object }, settings));
    }
    fit_to_load()?;
    if request.as_default {
        default::allowed()?;
    }
    hear();
    let (_lock, mounted) = pins::prepare()?;
    let held = pins::list()?;
    let remembered = default::remember(|name| held.iter().any(|ours| ours == name));
    if request.as_default {
        // What cannot be given back is not taken.
        remembered?;
    }
    let mut done = Vec::new();
    if let Err(error) = load_all(&wanted, request, &mut done) {
        for name in done {
            default::give_back(&name)?;
            remove(&name)?;
        }
        // There is an error to tell already.
        let _ = forget_default();
        return Err(error);
    }
    Ok(Loaded { controllers: done, mounted })
}

fn load_all(wanted: &[(Instance, Vec<Setting>)], request: &Request, done: &mut Vec<String>) -> Result<(), Error> {
    for (instance, settings) in wanted {
        load_one(instance, settings, request.connections)?;
        done.push(instance.name.clone());
        if request.as_default {
            default::set(&instance.name)?;
        }
    }
    Ok(())
}

/// Unloads controllers; without names, all of them.
///
/// # Errors
/// If one is not loaded: then none is unloaded.
pub fn unload(names: &[String]) -> Result<Unloaded, Error> {
    fit()?;
    hear();
    let (_lock, _) = pins::prepare()?;
    let held = pins::list()?;
    let wanted = match names {
        [] => held,
        names => names.iter().map(|name| Ok(called(&held, name)?.to_owned())).collect::<Result<_, Error>>()?,
    };
    let (mut default, mut namespaces) = (None, 0);
    for name in &wanted {
        let given_back = default::give_back(name)?;
        default = given_back.here.or(default);
        namespaces += given_back.elsewhere;
        remove(name)?;
    }
    forget_default()?;
    Ok(Unloaded { controllers: wanted, default, namespaces })
}

/// Forgets what the default was if none of ours is loaded any more.
fn forget_default() -> Result<(), Error> {
    if pins::list()?.is_empty() { default::forget() } else { Ok(()) }
}

/// Changes parameters of a controller that is loaded.
///
/// # Errors
/// If it is not loaded, or a parameter is wrong: then none is changed.
pub fn set(name: &str, settings: &[Setting]) -> Result<(), Error> {
    fit()?;
    let _lock = pins::prepare()?;
    let instance = instance(name)?;
    tunables::set(&instance, settings)
}

/// The controllers that are loaded and that sockets can take, in alphabetical order of their names in the kernel.
pub(crate) fn instances() -> Result<Vec<Instance>, Error> {
    let found = pins::list()?.into_iter().filter_map(|name| {
        let controller = PinnedMap::open(&name, pins::CONTROLLER).ok()?;
        // Something else may have unregistered it; `unload` still removes what is left.
        controller.bytes(&ZERO).ok()?.filter(|value| is_registered(value))?;
        let object = objects().find(|object| controller.is_called(object.kernel_name))?;
        Some(Instance { name, object })
    });
    Ok(found.collect())
}

/// The controller that is loaded under this name, its own or Manypath's.
fn instance(name: &str) -> Result<Instance, Error> {
    let mut held = instances()?;
    let names: Vec<String> = held.iter().map(|instance| instance.name.clone()).collect();
    let wanted = called(&names, name)?;
    held.retain(|instance| instance.name == wanted);
    held.pop().ok_or_else(|| Error::NotLoaded(wanted.to_owned()))
}

/// Which of the names of controllers that are loaded is meant, by itself or as Manypath has it: `reno` is ours, not the kernel's.
fn called<'a>(held: &'a [String], name: &str) -> Result<&'a str, Error> {
    let kernel_name = crate::kernel_name(name);
    let find = |wanted: &str| held.iter().find(|one| *one == wanted);
    let missing = || {
        let error = if is_available(kernel_name) { Error::Taken } else { Error::NotLoaded };
        error(kernel_name.to_owned())
    };
    find(name).or_else(|| find(kernel_name)).map(String::as_str).ok_or_else(missing)
}

/// The object of a controller, by Manypath's name or the kernel's.
fn object(name: &str) -> Result<Object, Error> {
    if objects().next().is_none() {
        return Err(Error::NoPrograms);
    }
    objects().find(|object| object.name == name || object.kernel_name == name).ok_or_else(|| Error::Unknown {
        name: name.to_owned(),
        known: objects().map(|object| object.name).collect::<Vec<_>>().join(", "),
    })
}

/// A name that both the kernel takes (letters, digits, '_' and '.', `bpf_obj_name_cpy`) and its file system for BPF (no '.').
fn checked(name: &str) -> Result<&str, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) {
        Ok(name)
    } else {
        Err(Error::Name(name.to_owned()))
    }
}

/// That this kernel can run controllers and this process may load them.
fn fit_to_load() -> Result<(), Error> {
    doctor::obstacle().map_or(Ok(()), |check| Err(Error::Unfit(check)))
}

/// That this process may deal with controllers that are loaded.
pub(crate) fn fit() -> Result<(), Error> {
    doctor::obstacle_to_those_loaded().map_or(Ok(()), |check| Err(Error::Unfit(check)))
}

/// Sends what libbpf says to the log.
pub(crate) fn hear() {
    libbpf_rs::set_print(Some((PrintLevel::Debug, |level, message| {
        let message = message.trim_end();
        match level {
            PrintLevel::Debug => tracing::trace!("{message}"),
            PrintLevel::Info | PrintLevel::Warn => tracing::debug!("{message}"),
        }
    })));
}

fn load_one(instance: &Instance, settings: &[Setting], connections: Option<u32>) -> Result<(), Error> {
    let Instance { name, object } = instance;
    if is_available(name) {
        return Err(if pins::folder(name).exists() { Error::Loaded } else { Error::Taken }(name.clone()));
    }
    // Of a loader that was killed, or of a controller that something else has unregistered.
    pins::remove(name)?;
    let mut open = ObjectBuilder::default().open_memory(object.elf).map_err(|error| refused(name, error))?;
    prepare(instance, &mut open, settings, connections)?;
    let mut loaded = open.load().map_err(|error| refused(name, error))?;
    pins::make(name)?;
    let result = register(name, &mut loaded);
    if result.is_err() {
        pins::remove(name)?;
    }
    result
}

fn refused(name: &str, error: libbpf_rs::Error) -> Error {
    Error::Refused { name: name.to_owned(), source: error.into() }
}

/// Sets what is set before loading: name, parameters, and the sizes of maps.
fn prepare(
    instance: &Instance,
    open: &mut OpenObject,
    settings: &[Setting],
    connections: Option<u32>,
) -> Result<(), Error> {
    let Instance { name, object } = instance;
    let refused = |error| refused(name, error);
    let layout = Layout::of_object(object)?;
    for mut map in open.maps_mut() {
        let (is_controller, is_tunables) = (map.map_type() == MapType::StructOps, map.name() == TUNABLES_SECTION);
        if let Some(count) = connections.and_then(|count| entries(&map.name().to_string_lossy(), count)) {
            map.set_max_entries(count).map_err(refused)?;
        }
        let Some(value) = map.initial_value_mut() else { continue };
        if is_controller {
            rename(value, object.kernel_name, name)?;
        } else if is_tunables {
            layout.write(settings, value)?;
        }
    }
    Ok(())
}

/// How many entries a map has, if that depends on the number of connections.
fn entries(map: &str, connections: u32) -> Option<u32> {
    match map {
        "connections" => Some(connections),
        // And one for all that have none.
        "weights" => connections.checked_add(1),
        _ => None,
    }
}

/// Where a name stands in the bytes of a `tcp_congestion_ops`; the rest of it are pointers.
fn place_of(value: &[u8], name: &str) -> Option<usize> {
    let whole = [name.as_bytes(), &[0]].concat();
    value.windows(whole.len()).position(|part| part == whole)
}

fn rename(value: &mut [u8], from: &str, to: &str) -> Result<(), Error> {
    let place = place_of(value, from).and_then(|at| value.get_mut(at..=at + MAX_NAME));
    let place = place.ok_or_else(|| Error::Name(to.to_owned()))?;
    place.fill(0);
    place[..to.len()].copy_from_slice(to.as_bytes());
    Ok(())
}

/// Pins an object's maps and registers its controller.
fn register(name: &str, loaded: &mut libbpf_rs::Object) -> Result<(), Error> {
    let refused = |error| refused(name, error);
    for mut map in loaded.maps_mut() {
        let pin = match (map.map_type(), map.name().to_str().unwrap_or_default()) {
            (MapType::StructOps, _) => pins::CONTROLLER,
            (_, "connections") => pins::CONNECTIONS,
            (_, "weights") => pins::WEIGHTS,
            (_, "counters") => pins::COUNTERS,
            (_, TUNABLES_SECTION) => pins::TUNABLES,
            _ => continue,
        };
        map.pin(pins::pin(name, pin)).map_err(refused)?;
    }
    let controller = loaded.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    let mut controller = controller.ok_or(Error::NoPrograms)?;
    let mut link = controller.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Taken(name.to_owned()),
        _ => refused(error),
    })?;
    // Else it would be unregistered with the link.
    link.disconnect();
    Ok(())
}

/// Whether the kernel has a controller of this name that sockets can take.
fn is_available(name: &str) -> bool {
    let available = sysctl::read(&["net", "ipv4", "tcp_available_congestion_control"]).unwrap_or_default();
    available.split_whitespace().any(|held| held == name)
}

/// `BPF_STRUCT_OPS_STATE_INUSE`: registered. One that was unregistered lives on with the connections that use it.
const IN_USE: u32 = 1;

/// Whether a controller is registered: its value begins with a counter of references and its state.
fn is_registered(value: &[u8]) -> bool {
    value.get(4..8).is_some_and(|state| state == IN_USE.to_ne_bytes())
}

/// Unregisters a controller and removes its pins; either may be missing.
fn remove(name: &str) -> Result<(), Error> {
    if PinnedMap::exists(name, pins::CONTROLLER) {
        let controller = PinnedMap::open(name, pins::CONTROLLER)?;
        if controller.bytes(&ZERO)?.is_some_and(|value| is_registered(&value)) {
            controller.delete(&ZERO)?;
        }
    }
    pins::remove(name)
}
