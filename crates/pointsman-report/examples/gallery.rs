//! Draws one chart of each kind into the folder given.

use pointsman_report::chart::{Area, Bars, Chart, Line, Picture, Points, colour, sheet};

fn main() {
    let folder = std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let save = |name: &str, picture: &Picture| {
        std::fs::write(folder.join(name).with_extension("svg"), picture.svg()).unwrap();
        std::fs::write(folder.join(name).with_extension("png"), picture.png().unwrap()).unwrap();
    };
    let curve =
        |f: fn(f64) -> f64| (0..=100).map(|i| (f64::from(i) / 100.0, f(f64::from(i) / 100.0))).collect::<Vec<_>>();
    let band = |points: &[(f64, f64)]| points.iter().map(|p| (p.1 - 0.02, p.1 + 0.02)).collect::<Vec<_>>();
    let ours = curve(|x| 0.4 - 0.3 * x.sqrt());
    let lines = Chart::new("Routing curves", "share routed", "mean loss (Brier points)")
        .caption("Mean loss when the first x % of each ranking are routed. Lower is better; bands are one standard deviation.")
        .x_range(0.0, 1.0)
        .x_percent()
        .line(Line::new("higher-order", colour::BLUE, ours.clone()).band(band(&ours)))
        .line(Line::new("total-uncertainty", colour::VERMILLION, curve(|x| 0.4 - 0.3 * x * x)).dashed())
        .line(Line::new("random", colour::GREY, curve(|x| 0.4 - 0.3 * x)).dotted());
    save("lines", &lines.draw());
    let bars = Chart::new("Gain by loss", "", "normalised gain").bars(
        Bars::new(["brier", "cross-entropy", "zero-one"].map(str::to_owned).to_vec())
            .series("higher-order", colour::BLUE, vec![0.8, 0.7, 0.9])
            .series("total-uncertainty", colour::VERMILLION, vec![0.5, 0.6, -0.1])
            .errors(vec![vec![0.02; 3], vec![0.05; 3]]),
    );
    save("bars", &bars.draw());
    let points = Chart::new("Landscape", "irreducible", "reducible")
        .x_range(0.0, 0.5)
        .y_range(0.0, 0.4)
        .area(Area::new("predict", colour::BLUE, vec![(0.0, 0.0, 0.1), (0.3, 0.0, 0.1), (0.4, 0.0, 0.0)]))
        .points(Points::new("predicted", colour::BLUE, vec![(0.1, 0.05), (0.2, 0.02)]).radii(vec![10.0, 20.0]))
        .points(Points::new("routed", colour::ORANGE, vec![(0.1, 0.25)]).radii(vec![14.0]));
    save("points", &points.draw());
    save(
        "sheet",
        &sheet(
            "A sheet",
            "Of two.",
            2,
            vec![lines.size(420.0, 300.0).no_legend().draw(), points.size(420.0, 300.0).no_legend().draw()],
        ),
    );
}
