//! `kernel weights`: how much of each path a connection wants.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use manypath_kernel::{MAX_SUBFLOWS, engine};

use crate::output;

/// Set the weights of connections under `uni-mptcp`
///
/// A subflow of small weight leaves its path to others where it can. Weights count relative to each other; they are given in
/// the order of the places that `status` shows, and those not given are 1. They take effect at once, and last as long as the
/// connection, or, without --conn, until the controller is unloaded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  manypath kernel weights --conn 5b9addec 1,0.2
  manypath kernel weights 1,0.2               all connections without weights of their own
  manypath kernel weights --conn 5b9addec --clear")]
pub(crate) struct Args {
    /// One connection, by its token in `status` (eight hexadecimal digits) [default: all]
    #[arg(long, value_name = "TOKEN")]
    conn: Option<Token>,

    /// Weights, separated by commas
    #[arg(value_name = "WEIGHTS", required_unless_present = "clear", value_delimiter = ',', value_parser = parse_weight)]
    weights: Vec<f64>,

    /// Forget the weights
    #[arg(long, conflicts_with = "weights")]
    clear: bool,
}

/// A connection's token, as `ss -M` writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token(u32);

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u32::from_str_radix(digits, 16).map(Self).map_err(|_| "a token is eight hexadecimal digits".to_owned())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// The weights that the programs take: millionths, and ratios that the paper's search uses.
fn parse_weight(text: &str) -> Result<f64, String> {
    let weight = text.parse::<f64>().ok().filter(|weight| (0.001..=1000.0).contains(weight));
    weight.ok_or_else(|| "a weight is a number from 0.001 to 1000".to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.weights.len() > MAX_SUBFLOWS {
        bail!("a connection has at most {MAX_SUBFLOWS} subflows: give as many weights at most");
    }
    let token = args.conn.map(|token| token.0);
    if args.clear {
        return Ok(engine::clear_weights(token)?);
    }
    engine::set_weights(token, &args.weights)?;
    if let Some(conn) = args.conn {
        let weights = engine::weights(conn.0)?.map(|weight| weight.to_string());
        output::line(&format!("{conn}: {}", weights.join(" ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_hexadecimal() {
        assert_eq!("5b9addec".parse(), Ok(Token(0x5b9a_ddec)));
        assert_eq!("0x1".parse::<Token>().unwrap().to_string(), "00000001");
        assert!("5b9addec1".parse::<Token>().is_err() && "".parse::<Token>().is_err());
    }

    #[test]
    fn weights_are_in_range() {
        assert_eq!(parse_weight("0.2"), Ok(0.2));
        for text in ["0", "-1", "NaN", "inf", "1001", "x"] {
            assert!(parse_weight(text).is_err(), "{text}");
        }
    }
}
