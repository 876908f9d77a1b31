use super::*;

#[test]
fn bad_rows_are_named() {
    let error = Table::new(["a", "b"], vec![0.5, 0.5, 0.5, f64::NAN]).unwrap_err();
    assert!(error.to_string().starts_with("row 1, column prob_b: NaN is not a probability"), "{error}");
    let table = Table::new(["a", "b"], vec![0.5, 0.5]).unwrap();
    let error = table.clone().with_votes(vec![0, 0]).unwrap_err();
    assert!(error.to_string().contains("row 0") && error.to_string().contains("no votes"), "{error}");
    assert!(table.clone().with_votes(vec![1, 0, 1, 0]).is_err());
    assert!(table.clone().with_weights(vec![0.0]).is_err());
    assert!(table.clone().with_features(["a"], vec![f64::INFINITY]).is_err());
    assert!(table.with_oracle("", vec![0.5, 0.5]).is_err());
}

#[test]
fn rows_with_equal_votes_share_an_index() {
    let table = Table::new(["a", "b"], [0.5, 0.5].repeat(4)).unwrap();
    assert_eq!(table.distinct_votes().index_of_row(), [0; 4]);
    let mut table = table.with_votes(vec![1, 2, 0, 3, 1, 2, 2, 1]).unwrap();
    assert_eq!(table.distinct_votes().index_of_row(), [0, 1, 0, 2]);
    table.extend(&table.select(&[3, 1], &[])).unwrap();
    assert_eq!(table.distinct_votes().index_of_row(), [0, 1, 0, 2, 2, 1]);
    assert_eq!(table.distinct_votes().len(), 3);
}

#[test]
fn reordering_classes_permutes_all_columns() {
    let table = Table::new(["a", "b", "c"], vec![0.5, 0.3, 0.2, 0.1, 0.2, 0.7]).unwrap();
    let table = table.with_votes(vec![3, 2, 1, 0, 1, 4]).unwrap().with_weights(vec![1.0, 2.0]).unwrap();
    let table = table.with_features(["x"], vec![7.0, 8.0]).unwrap();
    let order = ["c", "a", "b"].map(String::from);
    let other = table.in_order_of(&order).unwrap();
    assert_eq!(&*other.predictions(), [0.2, 0.5, 0.3, 0.7, 0.1, 0.2]);
    assert_eq!(other.votes(1).unwrap().counts(), [4, 0, 1]);
    assert_eq!(other.in_order_of(table.classes()).unwrap(), table);
    for wrong in [["a", "b", "d"].as_slice(), &["a", "b"], &["a", "a", "b"]] {
        let wrong: Vec<String> = wrong.iter().map(|&name| name.to_owned()).collect();
        assert!(table.in_order_of(&wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn too_few_or_repeated_classes_are_refused() {
    assert!(Table::new(["a"], vec![1.0]).is_err());
    assert!(Table::new(["a", "a"], vec![]).is_err());
    assert!(Table::new(["a", ""], vec![]).is_err());
    assert_eq!(Table::new(["a", "b"], vec![]).unwrap().rows(), 0);
}
