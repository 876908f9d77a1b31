//! Router files: what loads answers every task, and is written back the same.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman::{CellId, Estimator, Loss, Oracle, Partition, Router, Task};
use pointsman_fuzz::seal::{Parts, Tensor};
use pointsman_fuzz::{check_message, prepare, scratch, table};
use pointsman_table::{load_router, parse_router, save_router};
use safetensors::tensor::Dtype;

/// Good routers, one of each kind of axis.
static BASES: LazyLock<Vec<Parts>> = LazyLock::new(|| {
    let base = |(classes, partition): (usize, &str)| {
        let partition: Partition = partition.parse().expect("a partition");
        let table = table(classes, 12);
        let oracle = table.predictions().to_vec();
        let table = table.with_oracle("gpt", oracle).and_then(|t| t.with_weights((1..=12).map(f64::from).collect()));
        let router = Router::calibrate(&table.expect("a table"), &partition).expect("a router");
        let path = scratch("base.safetensors");
        save_router(&path, &router).expect("a scratch file");
        Parts::of(&std::fs::read(&path).expect("a scratch file")).expect("what was just written")
    };
    [
        (3, "top-class:3"),
        (2, "confidence:4"),
        (3, "level-sets"),
        (3, "features:x_length=3"),
        (2, "top-class:2*features:x_length=2"),
        (3, "level-sets*confidence:2"),
    ]
    .map(base)
    .into()
});

// The first byte chooses: a file as it is, a file whose checksum is mended, or changes to a good router.
fuzz_target!(|data: &[u8]| {
    prepare();
    let [mode, bytes @ ..] = data else { return };
    let file = match mode % 3 {
        0 => Some(bytes.to_vec()),
        1 => Parts::of(bytes).and_then(Parts::seal),
        _ => Recipe(bytes).cook().seal(),
    };
    let Some(file) = file else { return };
    match parse_router(&file) {
        Ok(router) => check(&router, data.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))),
        Err(message) => check_message(&message),
    }
});

fn check(router: &Router, choice: u8) {
    let classes = router.classes().len();
    let cells = router.cells().count();
    let path = scratch("router.safetensors");
    save_router(&path, router).expect("a router that was read can be written");
    let again = load_router(&path).expect("what was written can be read");
    assert_eq!(&again, router, "a router changed on its way through a file");
    for cell in (0..cells.min(200) as u32).map(CellId) {
        let _ = router.cells().name(cell, router.classes());
        let _ = router.mixture(cell).centroid();
    }
    let matrix = (0..classes).map(|act| (0..classes).map(|class| f64::from(act != class)).collect()).collect();
    let acts = (0..classes).map(|act| format!("act {act}"));
    let losses = [
        Loss::brier(),
        Loss::cross_entropy(),
        Loss::spherical(),
        Loss::zero_one(),
        Loss::three_part(),
        "asymmetric:2".parse().expect("a loss"),
        "fn-fp:fp=1,fn=3".parse().expect("a loss"),
        Loss::matrix(acts, matrix).expect("a cost matrix"),
    ];
    let estimators = [Estimator::Shrink, Estimator::Plugin, Estimator::Npmle, Estimator::Dirichlet];
    let mut tasks = vec![(&losses[0], Estimator::Shrink)];
    // Every pair for every router would take long; many cells or classes do so anyway, and show nothing new.
    if cells * classes <= 2000 {
        tasks.push((&losses[usize::from(choice % 8)], estimators[usize::from(choice / 8 % 4)]));
        tasks.push((&losses[usize::from(choice / 32)], estimators[usize::from(choice % 2)]));
    }
    for (loss, estimator) in tasks {
        let task = Task::new(loss.clone()).route("expert", Oracle::bayes(), 0.05).and_then(|task| task.abstain(0.3));
        match router.policy(&task.expect("a task").estimator(estimator)) {
            Ok(policy) => decide(router, &policy),
            Err(_) => assert!(loss.check_classes(classes).is_err(), "no policy for {loss}"),
        }
    }
}

fn decide(router: &Router, policy: &pointsman::Policy) {
    let table = router.rows();
    let bound = policy.task().loss().bound();
    let judge = |prediction: &[f64], features: &[f64]| {
        let decision = policy.decide_with(prediction, features).expect("a good row is decided");
        assert!(decision.rows() > 0);
        assert!((-1e-6..=bound + 1e-6).contains(&decision.total()), "a total of {}", decision.total());
        for cost in decision.costs().iter().chain(decision.costs_high()) {
            assert!(cost.is_finite(), "a cost of {cost}");
        }
        assert!(decision.margin() >= 0.0);
        let _ = (decision.action().to_string(), decision.level(), decision.support(), decision.served());
    };
    for row in 0..table.rows().min(40) {
        judge(table.prediction(row), table.features(row));
    }
    let classes = router.classes().len();
    let features = vec![-1e300; router.cells().features().len()];
    judge(&vec![1.0 / classes as f64; classes], &features);
    let mut sure = vec![0.0; classes];
    sure[classes - 1] = 1.0;
    judge(&sure, &features);
    let singles: Vec<f32> = sure.iter().map(|x| *x as f32).collect();
    assert_eq!(
        policy.decide_with(&singles, &features).expect("a good row is decided").cell(),
        policy.decide_with(&sure, &features).expect("a good row is decided").cell()
    );
    assert!(policy.decide_with(&sure[1..], &features).is_err());
}

/// Bytes that say how to change a good router.
struct Recipe<'a>(&'a [u8]);

impl Recipe<'_> {
    fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    fn text(&mut self) -> String {
        let length = usize::from(self.byte() % 32).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    fn real(&mut self) -> f64 {
        match self.byte() % 8 {
            0 => f64::from_le_bytes(self.bytes()),
            1 => {
                self.pick(&[0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324])
            }
            2 => self.pick(&[1.0, 0.5, 1.0 + 1e-9, 1.0 - 1e-9, 1.000_1, 2.0, 1e-100, 1e100]),
            _ => f64::from(self.byte()) / 255.0,
        }
    }

    fn cook(mut self) -> Parts {
        let mut parts = BASES[usize::from(self.byte()) % BASES.len()].clone();
        while !self.0.is_empty() {
            self.change(&mut parts);
        }
        parts
    }

    fn change(&mut self, parts: &mut Parts) {
        let header = &mut parts.header;
        match self.byte() % 16 {
            0 => header.partition = self.text(),
            1 => {
                let known = ["top-class:3", "confidence:4", "level-sets", "features:x_length=3", "top-class:100000"];
                header.partition = self.pick(&known).to_owned();
            }
            2 => {
                let more = self.pick(&["*level-sets", "*confidence:2", "*features:x_b=2", ",x_c=2"]);
                header.partition.push_str(more);
            }
            3 => header.classes.push(self.text()),
            4 => drop(header.classes.pop()),
            5 => header.features.push(self.text()),
            6 => drop(header.features.pop()),
            7 => header.oracles.push(self.text()),
            8 => header.recalibrated = !header.recalibrated,
            9 => header.version = u32::from(self.byte() % 3),
            10 => {
                // Another base's array under one of this router's names.
                let other = &BASES[usize::from(self.byte()) % BASES.len()];
                let mut tensor = other.tensors[usize::from(self.byte()) % other.tensors.len()].clone();
                if self.byte() % 2 == 0 {
                    tensor.name =
                        self.pick(&["axis.0.edges", "axis.1.edges", "axis.0.counts", "axis.0.levels"]).to_owned();
                }
                parts.tensors.retain(|old| old.name != tensor.name);
                parts.tensors.push(tensor);
            }
            _ if parts.tensors.is_empty() => {}
            kind => {
                let index = usize::from(self.byte()) % parts.tensors.len();
                self.change_tensor(kind, index, parts);
            }
        }
    }

    fn change_tensor(&mut self, kind: u8, index: usize, parts: &mut Parts) {
        let tensor: &mut Tensor = &mut parts.tensors[index];
        let size = match tensor.dtype {
            Dtype::F64 => 8,
            _ => 4,
        };
        match kind {
            // One element.
            11 | 12 => {
                let elements = tensor.bytes.len() / size;
                if elements > 0 {
                    let at = usize::from(self.byte()) % elements * size;
                    let bytes = match tensor.dtype {
                        Dtype::F64 => self.real().to_le_bytes().to_vec(),
                        Dtype::F32 => (self.real() as f32).to_le_bytes().to_vec(),
                        _ => u32::from(self.byte()).wrapping_sub(u32::from(self.byte() % 2)).to_le_bytes().to_vec(),
                    };
                    tensor.bytes[at..at + size].copy_from_slice(&bytes);
                }
            }
            // More or fewer rows.
            13 => {
                let Some(rows) = tensor.shape.first().copied() else { return };
                let width = tensor.shape.iter().skip(1).product::<usize>() * size;
                let wanted = rows.saturating_add_signed(isize::from(self.byte() as i8 % 4));
                if wanted > rows {
                    for _ in 0..(wanted - rows) * width / size {
                        let value = self.real();
                        match tensor.dtype {
                            Dtype::F64 => tensor.bytes.extend(value.to_le_bytes()),
                            Dtype::F32 => tensor.bytes.extend((value as f32).to_le_bytes()),
                            _ => tensor.bytes.extend((value as u32).to_le_bytes()),
                        }
                    }
                } else {
                    tensor.bytes.truncate(wanted * width);
                }
                tensor.shape[0] = wanted;
            }
            // The shape alone: transposed, flattened, or with zeros in it.
            14 => match self.byte() % 4 {
                0 => tensor.shape.reverse(),
                1 => tensor.shape = vec![tensor.shape.iter().product()],
                2 => tensor.shape.push(1),
                _ => {
                    tensor.shape = vec![0, usize::from(self.byte())];
                    tensor.bytes.clear();
                }
            },
            _ => match self.byte() % 3 {
                0 => drop(parts.tensors.remove(index)),
                1 => tensor.name = self.text(),
                _ => {
                    tensor.dtype = if size == 8 { Dtype::I64 } else { self.pick(&[Dtype::F32, Dtype::U32, Dtype::I32]) }
                }
            },
        }
    }
}
