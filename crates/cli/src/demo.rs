//! demo
use anyhow::Result;
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) async fn run(_: &Args, _: &crate::interrupt::Interrupt) -> Result<()> { Ok(()) }
