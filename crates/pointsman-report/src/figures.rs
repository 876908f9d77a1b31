//! The figures of a report, each a function from the report to a picture.

use pointsman::number::count;

use crate::chart::{Area, Bars, Chart, Line, Picture, Points, colour, label, sheet};
use crate::landscape::{Frame, regions};
use crate::report::{Detail, LossReport, Report};
use crate::words::{loss_name, ranking_label, rule_label};

/// A figure: its file name and its drawing function, which returns `None` if the report lacks the data.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Figure {
    /// The file name, without extension.
    pub name: &'static str,
    /// Draws the figure.
    pub draw: fn(&Report) -> Option<Picture>,
}

/// All figures, the summary first.
pub const FIGURES: [Figure; 7] = [
    Figure { name: "summary", draw: summary },
    Figure { name: "landscape", draw: |report| Some(landscape(report)?.draw()) },
    Figure { name: "curves", draw: |report| Some(curves(report)?.draw()) },
    Figure { name: "losses", draw: losses },
    Figure { name: "sweep", draw: |report| Some(sweep(report)?.draw()) },
    Figure { name: "mixtures", draw: mixtures },
    Figure { name: "actions", draw: |report| Some(actions(report)?.draw()) },
];

/// Number of panels in the figure of mixtures.
const MIXTURE_PANELS: usize = 12;
/// Radius in pixels of a circle for all traffic, and the largest radius.
const FULL_TRAFFIC_RADIUS: f64 = 62.0;
const MAX_RADIUS: f64 = 27.0;
/// Radius in pixels of a row's dot.
const ROW_RADIUS: f64 = 3.0;

fn own_loss(report: &Report) -> Option<(&Detail, &LossReport)> {
    let detail = report.detail.as_ref()?;
    Some((detail, detail.losses.first()?))
}

/// One page: the headline above the four pictures that explain it.
fn summary(report: &Report) -> Option<Picture> {
    let small = |chart: Chart| chart.size(620.0, 400.0).draw();
    let panels = [landscape(report)?, curves(report)?, sweep(report)?, actions(report)?];
    let warning = report.warnings.first().filter(|_| report.calibration_rows > 0);
    let warning = warning.map_or(String::new(), |text| format!(" Warning: {text}."));
    Some(sheet(
        &report.headline(),
        &format!(
            "{} {} {} {} rows; {} calibration rows in {} cells ({}).{warning}",
            report.money_line(),
            report.task_line(),
            count(report.evaluation.rows),
            report.kind_of_rows(),
            count(report.router.rows),
            report.router.cells,
            label(&report.router.partition, 60),
        ),
        2,
        panels.into_iter().map(small).collect(),
    ))
}

/// The decision landscape: irreducible against reducible loss, with regions and cells by traffic.
fn landscape(report: &Report) -> Option<Chart> {
    let (detail, loss) = own_loss(report)?;
    let shares: Vec<f64> = detail.drawn.iter().map(|&cell| report.cells[cell as usize].share).collect();
    let of_cells = || loss.cells.iter().map(|cell| cell.irreducible.zip(cell.reducible));
    let of_rows = || loss.rows.iter().map(|row| row.irreducible.zip(row.reducible));
    let known = || of_cells().chain(of_rows()).flatten();
    // Rows are drawn if they have their own costs, otherwise cells.
    let by_row = !loss.rows.is_empty();
    let (price, abstain_price) =
        (loss.grid.decision_prices[own_prices_index(loss)], loss.grid.abstain_prices[loss.grid.own[1]]);
    let span = |values: &mut dyn Iterator<Item = f64>| round_up(1.12 * values.fold(1e-6, f64::max));
    let width = span(&mut known().map(|cell| cell.0).chain(abstain_price));
    let height = span(&mut known().map(|cell| cell.1).chain(price));
    let mut chart = Chart::new(
        "Decision landscape",
        format!("irreducible loss ({}): what no oracle can remove", loss.unit),
        format!("reducible loss ({}): what an oracle saves", loss.unit),
    )
    .caption(format!(
        "{}, its colour the action taken{}. High up, an oracle saves more than it costs; far to the right, people themselves \
         disagree and any answer is expensive.",
        match by_row {
            true => format!("Each dot is one of {} {} rows", loss.rows.len(), report.kind_of_rows()),
            false => format!("Each circle is a cell, its area its share of the {} rows", report.kind_of_rows()),
        },
        if loss.grid.bayes { "; shaded is where each action is the cheapest" } else { "" }
    ))
    .x_range(0.0, width)
    .y_range(0.0, height);
    let radius =
        |i: usize| if by_row { ROW_RADIUS } else { (FULL_TRAFFIC_RADIUS * shares[i].sqrt()).clamp(2.5, MAX_RADIUS) };
    let marks: Vec<Option<(f64, f64)>> = if by_row { of_rows().collect() } else { of_cells().collect() };
    let letters = if by_row { &loss.grid.row_actions } else { &loss.grid.actions };
    let letters: Vec<char> = letters[own_prices_index(loss)].chars().collect();
    chart = chart.room_for((0..marks.len()).map(radius).fold(0.0, f64::max) + 3.0);
    // Regions exist only for an oracle whose loss is the irreducible loss.
    if loss.grid.bayes {
        let frame = Frame { x: chart.x_ends((0.0, width)), y: chart.y_ends((0.0, height)) };
        chart = regions(loss, loss.grid.own, frame).into_iter().fold(chart, Chart::area);
    }
    for (letter, name, colour) in actions_of(report) {
        let members: Vec<usize> =
            (0..marks.len()).filter(|&i| letters.get(i) == Some(&letter) && marks[i].is_some()).collect();
        if letter != '?' || !members.is_empty() {
            let points = members.iter().filter_map(|&i| marks[i]).collect();
            let radii = members.iter().map(|&i| radius(i)).collect();
            chart = chart.points(Points::new(name, colour, points).radii(radii));
        }
    }
    Some(chart)
}

/// The letter, the name and the colour of each action of a report.
fn actions_of(report: &Report) -> Vec<(char, String, &'static str)> {
    let routes = &report.evaluation.task.routes;
    let mut actions = vec![('p', "predict".to_owned(), colour::action("predict"))];
    match routes.len() {
        0 | 1 => actions.push(('r', "route".to_owned(), colour::action("route"))),
        n => actions.extend(routes.iter().take(10).enumerate().map(|(place, route)| {
            let letter = char::from_digit(place as u32, 10).unwrap_or('r');
            (letter, format!("route to {}", label(&route.name, 24)), colour::route(place, n))
        })),
    }
    actions.extend([
        ('a', "abstain".to_owned(), colour::action("abstain")),
        ('?', "undetermined".to_owned(), colour::action("?")),
    ]);
    actions
}

/// The position of the task's own prices in the lists over the price grid.
fn own_prices_index(loss: &LossReport) -> usize {
    loss.grid.own[0] * loss.grid.abstain_prices.len() + loss.grid.own[1]
}

/// Rounds up to a round number.
fn round_up(x: f64) -> f64 {
    let unit = 10_f64.powf(x.log10().floor());
    [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .map(|m| m * unit)
        .into_iter()
        .find(|&r| r >= x)
        .unwrap_or(x)
}

/// Mean loss against the share routed.
fn curves(report: &Report) -> Option<Chart> {
    let (_, loss) = own_loss(report)?;
    let mut chart = Chart::new("Routing curves", "share of the queries routed", format!("mean loss ({})", loss.unit))
        .caption(format!(
            "Mean loss on {} rows when the first x % of each ranking go to a perfect oracle, without prices{}. Lower is \
             better: the closer to the best order, the more a routed query saves.{}",
            report.kind_of_rows(),
            if loss.grid.corrected { ", corrected for few labels" } else { "" },
            // Curves by known truth do not rise.
            if loss.grid.corrected { " A perfect oracle takes no loss back: estimates are drawn as the nearest curves that do not rise." } else { "" }
        ))
        .x_range(0.0, 1.0)
        .x_percent();
    let mut lowest = f64::INFINITY;
    let mut highest = f64::NEG_INFINITY;
    let by_row = report.router.decides_by_row();
    for (name, values) in loss.best_curves().iter().filter(|(name, _)| !by_row || *name != "cell-optimal") {
        let points: Vec<(f64, f64)> =
            values.iter().enumerate().map(|(percent, &y)| (percent as f64 / 100.0, y)).collect();
        lowest = values.iter().copied().fold(lowest, f64::min);
        highest = values.iter().copied().fold(highest, f64::max);
        let line = Line::new(ranking_label(name), colour::strategy(name), points);
        chart = chart.line(match name {
            "random" => line.dotted(),
            "cell-optimal" | "pointwise-optimal" => line.dashed().width(1.8),
            _ => line,
        });
    }
    let room = 0.05 * (highest - lowest).max(1e-9);
    Some(chart.y_range((lowest - room).max(0.0).min(lowest), highest + room))
}

/// The gain of each ranking under every loss, from one router.
fn losses(report: &Report) -> Option<Picture> {
    let (detail, own) = own_loss(report)?;
    let names = detail.losses.iter().map(|loss| label(&loss_name(&loss.loss), 18)).collect();
    let mut bars = Bars::new(names);
    let strategies = ["higher-order", "total-uncertainty", "cell-optimal"];
    let (strategies, about) = match report.router.decides_by_row() {
        true => (&strategies[..2], "The same stored trees answer every loss without retraining."),
        false => (&strategies[..], "The same stored cells answer every loss without retraining."),
    };
    for &strategy in strategies {
        let gain = |loss: &LossReport| loss.best_gain().get(strategy).copied().flatten().unwrap_or(0.0);
        bars =
            bars.series(ranking_label(strategy), colour::strategy(strategy), detail.losses.iter().map(gain).collect());
    }
    let chart = Chart::new("One router, every loss", "", "routing gain: 0 random, 1 the best possible order")
        .caption(format!(
            "{about} The confidence threshold routes the least certain prediction first{}. No bar: routing gains nothing under this loss.",
            if own.grid.corrected { "; all gains are corrected for few labels" } else { "" }
        ))
        .size(1080.0, 460.0)
        .bars(bars);
    Some(chart.draw())
}

/// Cost against the price of abstaining, three-way and two-way.
fn sweep(report: &Report) -> Option<Chart> {
    let (_, loss) = own_loss(report)?;
    let grid = &loss.grid;
    let (never_route, never_abstain) = (grid.route_prices.len() - 1, grid.abstain_prices.len() - 1);
    let at = |route: usize, abstain: usize| grid.router[route * grid.abstain_prices.len() + abstain];
    let own = grid.own[0];
    let line = |cost: &dyn Fn(usize) -> Option<f64>| {
        let point = |(i, price): (usize, &Option<f64>)| Some(((*price)?, cost(i)?));
        grid.abstain_prices.iter().enumerate().filter_map(point).collect::<Vec<_>>()
    };
    let mut chart = Chart::new(
        "Three-way decisions",
        format!("price of abstaining ({})", loss.unit),
        format!("cost per query ({})", loss.unit),
    )
    .caption(format!(
        "Mean cost on {} rows as the price of abstaining rises, at the task's prices of routing{}. The three-way line should \
         lie on or below both two-way lines; where it is below both, all three actions are worth having.{}",
        report.kind_of_rows(),
        if grid.corrected { "; corrected for few labels" } else { "" },
        if report.evaluation.task.is_limited() { " Routing keeps to the task's limit." } else { "" }
    ))
    .line(Line::new("predict / route / abstain", colour::BLUE, line(&|i| at(own, i))).width(3.2))
    .line(Line::new("predict / route", colour::ORANGE, line(&|_| at(own, never_abstain))).dashed())
    .line(Line::new("predict / abstain", colour::PURPLE, line(&|i| at(never_route, i))).dashed());
    if !report.router.decides_by_row() {
        let best = line(&|i| Some(grid.cell_optimal[own * grid.abstain_prices.len() + i]));
        chart = chart.line(Line::new(rule_label("cell-optimal"), colour::GREEN, best).dotted());
    }
    if let Some(here) = grid.abstain_prices[grid.own[1]].zip(at(own, grid.own[1])) {
        chart = chart.points(Points::new("the task's price", colour::INK, vec![here]).radii(vec![6.0]));
    }
    Some(chart)
}

/// The share of each action against the price of abstaining.
fn actions(report: &Report) -> Option<Chart> {
    let (_, loss) = own_loss(report)?;
    let grid = &loss.grid;
    let several = grid.routes.len() > 1;
    let named = |name: &str| if several { format!("routed to {}", label(name, 20)) } else { "routed".to_owned() };
    let mut bands: Vec<(String, &str, &[Option<f64>])> =
        vec![("predicted".into(), colour::action("predict"), &grid.predicted)];
    for (place, route) in grid.routes.iter().enumerate() {
        bands.push((named(&route.name), colour::route(place, grid.routes.len()), &route.shares));
    }
    if grid.routes.is_empty() {
        bands.push(("routed".into(), colour::action("route"), &grid.routed));
    }
    bands.push(("abstained".into(), colour::action("abstain"), &grid.abstained));
    let entries = grid.abstain_prices.iter().enumerate();
    let reached: Vec<(usize, f64)> = entries
        .filter_map(|(i, price)| Some((grid.own[0] * grid.abstain_prices.len() + i, (*price)?)))
        .filter(|(at, _)| grid.router[*at].is_some())
        .collect();
    let last = reached.last().map_or(1.0, |(_, price)| *price);
    let (x, y) =
        (format!("price of abstaining ({})", loss.unit), format!("share of the {} rows", report.kind_of_rows()));
    let mut chart = Chart::new("Action shares", x, y)
        .caption("Share of each action as the price of abstaining rises; the dashed line is the task's own price.")
        .x_range(0.0, last.max(1e-6))
        .y_range(0.0, 1.0)
        .y_percent();
    let mut below = vec![0.0; reached.len()];
    for (name, colour, shares) in bands {
        let mut edges = Vec::new();
        for ((at, price), below) in reached.iter().zip(&mut below) {
            let above = (*below + shares[*at].unwrap_or(0.0)).min(1.0);
            edges.push((*price, *below, above));
            *below = above;
        }
        chart = chart.area(Area::new(name, colour, edges).opacity(0.75));
    }
    if let Some(price) = grid.abstain_prices[grid.own[1]] {
        chart = chart.line(Line::new("the task's price", colour::INK, vec![(price, 0.0), (price, 1.0)]).dashed());
    }
    Some(chart)
}

/// The fewest characters to which the class of a panel's title is shortened.
const MIN_CLASS_CHARS: usize = 8;

/// The title of a cell's panel, of at most `most` characters: its name with the class shortened as far as the rest needs, since panels of
/// one class differ in the rest. A right-to-left class name does not reverse the numbers after it.
fn panel_title(name: &str, classes: &[String], most: usize) -> String {
    const LEFT_TO_RIGHT_MARK: char = '\u{200e}';
    let is_leftward = |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    let class = classes.iter().filter(|class| name.starts_with(class.as_str())).max_by_key(|class| class.len());
    let Some(class) = class else { return label(name, most) };
    let rest = &name[class.len()..];
    let short = label(class, most.saturating_sub(rest.chars().count()).max(MIN_CLASS_CHARS));
    let mark = class.chars().any(is_leftward).then_some(LEFT_TO_RIGHT_MARK);
    let title: String = short.chars().chain(mark).chain(rest.chars()).collect();
    label(&title, most + mark.map_or(0, char::len_utf16))
}

/// Stored and held-out mixtures of the busiest cells.
fn mixtures(report: &Report) -> Option<Picture> {
    let (detail, _) = own_loss(report)?;
    let mut order: Vec<usize> = (0..detail.drawn.len()).filter(|&i| detail.mixtures[i].stored.is_some()).collect();
    let share = |i: usize| report.cells[detail.drawn[i] as usize].share;
    order.sort_by(|&a, &b| share(b).total_cmp(&share(a)));
    order.truncate(MIXTURE_PANELS);
    let mut shown = order.clone();
    shown.sort_unstable();
    let panel = |&i: &usize| {
        let mixture = &detail.mixtures[i];
        let name = &report.cells[detail.drawn[i] as usize].name;
        let stairs = |shares: &[f64]| {
            let bins = shares.len() as f64;
            let mut points = vec![(0.0, 0.0)];
            for (bin, &y) in shares.iter().enumerate() {
                points.extend([(bin as f64 / bins, y), ((bin + 1) as f64 / bins, y)]);
            }
            points.push((1.0, 0.0));
            points
        };
        let axis = format!("share of one item's labels: {}", label(&mixture.class, 16));
        let mut chart = Chart::new(panel_title(name, &report.classes, 40), axis, "share of the items")
            .size(360.0, 220.0)
            .no_legend()
            .x_range(0.0, 1.0);
        let both = mixture.stored.iter().chain(&mixture.held_out).flatten();
        chart = chart.y_range(0.0, round_up(1.05 * both.copied().fold(0.05, f64::max))).y_percent();
        if let Some(stored) = &mixture.stored {
            chart = chart.line(Line::new("stored", colour::SKY, stairs(stored)).filled().width(1.0));
        }
        if let Some(evaluated) = &mixture.held_out {
            chart = chart.line(Line::new(report.kind_of_rows(), colour::VERMILLION, stairs(evaluated)).width(1.8));
        }
        chart.draw()
    };
    Some(sheet(
        &format!(
            "Label distributions of the cells: stored rows (sky blue, shaded) and evaluated {} rows (vermilion line)",
            report.kind_of_rows()
        ),
        "For the cells with the most traffic: how often one class is named among one item's labels. If the line follows the shade, the \
         stored rows represent the evaluated ones. Mass in the middle is disagreement among people, which no oracle removes; mass at both \
         ends is what an oracle resolves.",
        3,
        shown.iter().map(panel).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::panel_title;

    #[test]
    fn panel_titles_keep_what_panels_of_a_class_differ_in() {
        let classes = ["complaint".to_owned(), "complaint about a delivery that came too late".to_owned()];
        let title = |range: &str| panel_title(&format!("{}, confidence {range}", classes[1]), &classes, 40);
        assert_eq!(title("0.73–0.87"), "complaint about a…, confidence 0.73–0.87");
        assert_ne!(title("0.73–0.87"), title("0.87–0.91"));
        // What is too long without the class is shortened at its end.
        let long = title("0.73–0.87 and x_words < 31.5");
        assert!(
            long.starts_with("complai…, confidence 0.73") && long.ends_with('…') && long.chars().count() == 40,
            "{long}"
        );
        assert_eq!(panel_title("confidence 0.5–0.6", &classes, 40), "confidence 0.5–0.6");
        assert_eq!(panel_title("אבג 0.5–0.6", &["אבג".to_owned()], 40), "אבג\u{200e} 0.5–0.6");
    }
}
