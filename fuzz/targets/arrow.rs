//! Arrow streams as bodies of requests to decide: all rows are decided and committed, or the request is refused with a reason.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman_fuzz::prepare_service;
use pointsman_fuzz::service::Service;

static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);

// The first byte chooses the deployment; the rest is the body.
fuzz_target!(|data: &[u8]| {
    prepare_service();
    let [how, body @ ..] = data else { return };
    let reply = SERVICE.decide(*how, "application/vnd.apache.arrow.stream", body);
    reply.check();
    if reply.status.is_success() {
        let reader = arrow_ipc::reader::StreamReader::try_new(reply.bytes.as_slice(), None).expect("an Arrow stream");
        let rows: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
        assert_eq!(rows, reply.committed, "what is answered is what is committed");
    }
});
