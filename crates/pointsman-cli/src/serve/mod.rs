//! `pointsman serve` and its clients (`keys`, `deployments`, `versions`, `decisions`, `admin-log`, `backup`), if the build has the feature `serve`.

#[cfg(feature = "serve")]
mod admin_log;
#[cfg(feature = "serve")]
mod backup;
#[cfg(feature = "serve")]
mod client;
#[cfg(feature = "serve")]
mod decisions;
#[cfg(feature = "serve")]
mod deployments;
#[cfg(feature = "serve")]
mod keys;
#[cfg(feature = "serve")]
mod run;

#[cfg(feature = "serve")]
pub(crate) use admin_log::run as admin_log;
#[cfg(feature = "serve")]
pub(crate) use backup::run as backup;
#[cfg(feature = "serve")]
pub(crate) use decisions::run as decisions;
#[cfg(feature = "serve")]
pub(crate) use deployments::{deployments, versions};
#[cfg(feature = "serve")]
pub(crate) use keys::run as keys;
#[cfg(feature = "serve")]
pub(crate) use run::run;

#[cfg(not(feature = "serve"))]
pub(crate) use without::{admin_log, backup, decisions, deployments, keys, run, versions};

#[cfg(not(feature = "serve"))]
mod without {
    use crate::args::{
        AdminLogArgs, BackupArgs, DecisionsCommand, DeploymentsCommand, KeysCommand, ServeArgs, VersionsCommand,
    };
    use crate::failure::Hint;

    pub(crate) fn run(_: &ServeArgs) -> anyhow::Result<()> {
        Err(no_service())
    }

    pub(crate) fn keys(_: &KeysCommand) -> anyhow::Result<()> {
        Err(no_service())
    }

    pub(crate) fn deployments(_: &DeploymentsCommand) -> anyhow::Result<()> {
        Err(no_service())
    }

    pub(crate) fn versions(_: &VersionsCommand) -> anyhow::Result<()> {
        Err(no_service())
    }

    pub(crate) fn decisions(_: &DecisionsCommand) -> anyhow::Result<()> {
        Err(no_service())
    }

    pub(crate) fn admin_log(_: &AdminLogArgs) -> anyhow::Result<()> {
        Err(no_service())
    }

    pub(crate) fn backup(_: &BackupArgs) -> anyhow::Result<()> {
        Err(no_service())
    }

    fn no_service() -> anyhow::Error {
        let how = "build it in: cargo install --path crates/pointsman-cli";
        anyhow::anyhow!("this build has no service: it needs the build feature `serve`").context(Hint(how.into()))
    }
}
