//! The card on the calibration of the weak model.

use pointsman::Diagnosis;
use pointsman::diagnose::{Estimate, WeakModel};
use pointsman::number::{decimals, fixed, percent};

use super::calibration_answer;
use super::html::{self, estimate_cells, html_facts, html_table};

pub(super) fn card(diagnosis: &Diagnosis) -> String {
    let model = &diagnosis.weak_model;
    let mut items = vec![
        ("mean confidence", fixed(model.confidence, 3)),
        ("labels that are its top class", fixed(model.accuracy, 3)),
        (
            "calibration error",
            format!("{}, of which chance alone explains {}", fixed(model.error, 3), fixed(model.floor, 3)),
        ),
    ];
    let saved = |saves: &Estimate| {
        let digits = decimals([saves.estimate, saves.low, saves.high]).min(5);
        let [estimate, ends] = estimate_cells(Some(saves), digits, 1.0);
        format!("{estimate} {} per query, interval {ends}", diagnosis.unit)
    };
    // A negative reduction is reported as an increase.
    let turned = |saves: &Estimate, [falls, rises]: [&'static str; 2]| match saves.estimate < 0.0 {
        true => (rises, saved(&Estimate { estimate: -saves.estimate, low: -saves.high, high: -saves.low })),
        false => (falls, saved(saves)),
    };
    match &model.recalibrating_saves {
        [_, Some(cost)] => {
            items.push(turned(
                cost,
                ["at these prices, --recalibrate saves", "at these prices, --recalibrate costs more by"],
            ));
        }
        [Some(loss), None] => {
            items.push(turned(loss, ["--recalibrate lowers the loss by", "--recalibrate raises the loss by"]));
        }
        [None, None] => {}
    }
    if let Some(partition) = &model.recalibrated_partition {
        items.push(("with the means of cells by", format!("--partition {partition}")));
    }
    let rows: Vec<_> = model
        .bins
        .iter()
        .map(|bin| (false, vec![fixed(bin.confidence, 3), fixed(bin.accuracy, 3), percent(bin.share)]))
        .collect();
    let numbers =
        html_table("Reliability", &["confidence", "labels that are the top class", "share of the rows"], &rows);
    let body = format!(
        "<div class=\"two\"><figure class=\"small\">{}<figcaption>Each circle is a group of rows of like confidence, its area their share. Below the \
         dashed line the model is more confident than the labels justify.</figcaption></figure>\
         <div>{}<details><summary>The circles as numbers</summary>{numbers}</details></div></div>",
        reliability_svg(model),
        html_facts(&items)
    );
    html::card("Is the weak model calibrated?", &format!("{}.", calibration_answer(model)), &body)
}

/// The reliability diagram in the colours of the page.
fn reliability_svg(model: &WeakModel) -> String {
    const SIDE: f64 = 330.0;
    const LEFT: f64 = 52.0;
    const TOP: f64 = 26.0;
    // Space that keeps circles at 0 and 1 clear of the axes and their numbers.
    const CIRCLE_MARGIN: f64 = 20.0;
    let x = |v: f64| LEFT + CIRCLE_MARGIN + v * (SIDE - 2.0 * CIRCLE_MARGIN);
    let y = |v: f64| TOP + SIDE - CIRCLE_MARGIN - v * (SIDE - 2.0 * CIRCLE_MARGIN);
    let (right, bottom) = (LEFT + SIDE, TOP + SIDE);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Reliability diagram\">",
        right + 16.0,
        bottom + 48.0
    );
    for step in 0..=5 {
        let v = f64::from(step) / 5.0;
        svg += &format!(
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{0:.1}\" y=\"{1:.1}\" text-anchor=\"middle\">{2} %</text>\
             <line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{3:.1}\" y2=\"{3:.1}\"/>\
             <text class=\"tick\" x=\"{4:.1}\" y=\"{5:.1}\" text-anchor=\"end\">{2} %</text>",
            x(v),
            bottom + 18.0,
            20 * step,
            y(v),
            LEFT - 6.0,
            y(v) + 4.0
        );
    }
    svg += &format!(
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
         <line class=\"axis\" x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">confidence</text>\
         <text x=\"2\" y=\"14\">labels that are its top class</text>\
         <line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--other)\" stroke-width=\"2\" stroke-dasharray=\"8 5\"/>",
        f64::midpoint(LEFT, right),
        bottom + 42.0,
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0)
    );
    for bin in &model.bins {
        svg += &format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{:.1}\" fill=\"var(--predict)\" fill-opacity=\"0.65\" stroke=\"var(--predict)\">\
             <title>confidence {}, labels {}, {} of the rows</title></circle>",
            x(bin.confidence),
            y(bin.accuracy),
            (40.0 * bin.share.sqrt()).clamp(3.0, 18.0),
            fixed(bin.confidence, 3),
            fixed(bin.accuracy, 3),
            percent(bin.share)
        );
    }
    svg + "</svg>"
}
