//! Filters, and columns under other names.

use std::path::Path;

use pointsman_table::{Columns, Delimiter, Filter, Need, ReadOptions, batches, read_frame};

use crate::support::{Folder, Layout, Nesting, Precision, Sample, arrow_file, parquet, zstd};

fn filtered(filters: &[&str]) -> ReadOptions {
    ReadOptions { filters: filters.iter().map(|f| f.parse().unwrap()).collect(), ..ReadOptions::default() }
}

/// Without its separator, the prefix would make the separator part of every class.
#[test]
fn prefixes_without_their_separator_are_refused() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "p_a,p_b,v_a,v_b\n0.5,0.5,1,2\n");
    for (columns, prefix) in [("probs=p,votes=v_", "p_"), ("probs=p_,votes=v", "v_")] {
        let error = read_frame(&path, &named(columns)).unwrap_err().to_string();
        assert!(error.contains(&format!("give the whole prefix, {prefix}")), "{error}");
    }
    assert_eq!(read_frame(&path, &named("probs=p_,votes=v_")).unwrap().table.classes(), ["a", "b"]);
}

/// The same letters may have two Unicode forms, which look alike.
#[test]
fn names_in_another_unicode_form_are_explained() {
    let folder = Folder::new();
    let text = "prob_caf\u{e9},prob_b,votes_cafe\u{301},votes_b\n0.5,0.5,1,2\n";
    let path = folder.file("a.csv", text);
    let error = read_frame(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("another Unicode form"), "{error}");
}

fn named(columns: &str) -> ReadOptions {
    ReadOptions { columns: columns.parse().unwrap(), ..ReadOptions::default() }
}

#[test]
fn ranges_keep_numbers_and_dates() {
    let folder = Folder::new();
    let header = "prob_a,prob_b,score,day";
    let rows = [("0.5", "2024-01-30"), ("10", "2024-01-31T18:00:00Z"), ("9", "2024-02-01"), ("", ""), ("n/a", "soon")];
    let text: String = rows.iter().map(|(score, day)| format!("1,0,{score},{day}\n")).collect();
    let path = folder.file("a.csv", format!("{header}\n{text}"));
    let kept = |filters: &[&str]| read_frame(&path, &filtered(filters)).map(|frame| frame.rows);
    assert_eq!(kept(&["score!=n/a", "score<9.5"]).unwrap(), [1, 3]);
    assert_eq!(kept(&["score!=n/a", "score>=9"]).unwrap(), [2, 3]);
    assert_eq!(kept(&["day!=soon", "day<=2024-01-31"]).unwrap(), [1, 2]);
    assert_eq!(kept(&["day!=soon", "day>2024-01-31"]).unwrap(), [3]);
    assert_eq!(kept(&["day!=soon", "day>=2024-01-31T19:00:00Z"]).unwrap(), [3]);
    assert_eq!(kept(&["score!=9"]).unwrap(), [1, 2, 4, 5]);
    let error = kept(&["score<9.5"]).unwrap_err().to_string();
    assert!(error.contains("row 5 (line 6), column score: \"n/a\" is not a number"), "{error}");
    assert!(error.contains("--where 'score!=n/a'"), "{error}");
    let error = kept(&["day!=soon", "day>2024-02-01"]).unwrap_err().to_string();
    assert!(error.contains("no row passes day!=soon and day>2024-02-01"), "{error}");
    for text in ["date>=yesterday", "split<", "<3"] {
        let error = text.parse::<Filter>().unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("2024-01-31"), "{error}");
    }
    assert_eq!("note=a>=b".parse::<Filter>().unwrap().value(), "a>=b");
}

#[test]
fn predictions_may_be_named_like_the_classes() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "id,cat,dog,votes_cat,votes_dog\n1,0.9,0.1,2,1\n2,0.2,0.8,0,3\n");
    let error = read_frame(&path, &ReadOptions::default()).unwrap_err().to_string();
    let flag = "--columns probs=cat,probs=dog";
    assert!(error.contains(flag) && error.contains("columns={'probs': ['cat', 'dog']}"), "{error}");
    let options = named("probs=cat,probs=dog");
    let table = read_frame(&path, &options).unwrap().table;
    assert_eq!((table.classes(), &*table.prediction(1)), (&["cat".to_owned(), "dog".to_owned()][..], &[0.2, 0.8][..]));
    assert_eq!(table.votes(0).unwrap().counts(), [2, 1]);
    assert_eq!(options.columns.to_string(), "probs=cat,probs=dog");
    // In the order of a router's classes.
    let order = Some(vec!["dog".to_owned(), "cat".to_owned()]);
    let table = read_frame(&path, &ReadOptions { classes: order, ..options.clone() }).unwrap().table;
    assert_eq!(&*table.prediction(1), [0.8, 0.2]);
    let error = read_frame(&path, &named("probs=cat,probs=dgo")).unwrap_err().to_string();
    assert!(error.contains("no column named by probs=dgo") && error.contains("columns found: id, cat"), "{error}");
    let bad = folder.file("bad.csv", "cat,dog\n0.9,0.1\n0.2,0.2\n");
    let error = read_frame(&bad, &options).unwrap_err().to_string();
    assert!(error.contains("row 2 (line 3), column cat, dog"), "{error}");
    // Without votes, columns that sum to one are suggested, quoted if a shell needs it.
    let path = folder.file("b.csv", "id,billing question,spam,length\n1,0.25,0.75,12\n");
    let error = read_frame(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--columns 'probs=billing question,probs=spam'"), "{error}");
    assert!("probs=a,probs=a".parse::<Columns>().unwrap_err().to_string().contains("probs is given twice"));
}

#[test]
fn filters_keep_the_same_rows_in_every_format() {
    let (folder, sample) = (Folder::new(), Sample::new(20));
    let mut files = vec![
        folder.file("a.csv", sample.text(',')),
        folder.file("a.jsonl", sample.jsonl(Layout::Maps)),
        folder.file("a.npz", sample.npz(Precision::Double)),
        folder.path("a.parquet"),
        folder.path("a.arrow"),
    ];
    parquet(&files[3], &sample.wide_batch(false), zstd());
    arrow_file(&files[4], &sample.wide_batch(false), None);
    for nesting in [Nesting::Struct, Nesting::Map] {
        let path = folder.path(&format!("{nesting:?}.arrow"));
        arrow_file(&path, &sample.nested_batch(nesting), None);
        files.push(path);
    }
    let whole = sample.table();
    for path in files {
        for filters in [&["split=1"][..], &["split=1.0"], &["split = 1"], &["split=1", "weight=3.5"]] {
            let frame = read_frame(&path, &filtered(filters)).unwrap();
            let rows: Vec<u64> = if filters.len() == 2 { vec![4] } else { (1..=20).filter(|i| i % 2 == 0).collect() };
            assert_eq!(frame.rows, rows, "{}", path.display());
            for (i, row) in rows.iter().map(|row| *row as usize - 1).enumerate() {
                assert_eq!(frame.table.prediction(i), whole.prediction(row));
                assert_eq!(frame.table.votes(i), whole.votes(row));
                assert_eq!(frame.table.truth(i), whole.truth(row));
                assert_eq!(frame.table.features(i), whole.features(row));
                assert_eq!(frame.ids.as_ref().unwrap()[i], sample.ids[row]);
            }
        }
        let text = format!("id={}", sample.ids[3]);
        assert_eq!(read_frame(&path, &filtered(&[&text])).unwrap().rows, [4]);
        let options = ReadOptions { batch_rows: 3, ..filtered(&["split=0"]) };
        let sizes: Vec<usize> = batches(&path, &options).unwrap().map(|f| f.unwrap().table.rows()).collect();
        assert_eq!(sizes, [3, 3, 3, 1], "{}", path.display());
        let error = read_frame(&path, &filtered(&["split=7", "weight=0.5"])).unwrap_err().to_string();
        let parts =
            ["no row passes split=7 and weight=0.5", "split has the values 0, 1", "weight has the values 0.5, 1.5"];
        parts.iter().for_each(|part| assert!(error.contains(part), "{error}"));
        let error = read_frame(&path, &filtered(&["fold=1"])).unwrap_err().to_string();
        assert!(
            error.contains("no column \"fold\" to filter by; columns found: ") && error.contains("split"),
            "{error}"
        );
    }
}

#[test]
fn filtered_rows_are_not_checked() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "prob_a,prob_b,split\n1,0,x\nnone,none,y\n");
    assert_eq!(read_frame(&path, &filtered(&["split=x"])).unwrap().table.rows(), 1);
    let path = folder.file("a.jsonl", "{\"probs\":[1,0],\"split\":0}\n{\"probs\":null,\"split\":1}\n{\"split\":null}");
    assert_eq!(read_frame(&path, &filtered(&["split=0"])).unwrap().table.rows(), 1);
}

#[test]
fn columns_can_have_other_names() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "p_a,p_b,v_a,v_b,f_x,uid,w,m_big_a,m_big_b,t_a,t_b\n1,0,2,1,5,u,3,0,1,1,0\n");
    let options = named("probs=p_,votes=v_,features=f_,oracle=m_,truth=t_,id=uid,weight=w");
    let frame = read_frame(&path, &options).unwrap();
    let table = &frame.table;
    assert_eq!(
        (table.classes(), table.votes(0).unwrap().counts()),
        (&["a".to_owned(), "b".to_owned()][..], &[2, 1][..])
    );
    assert_eq!((table.feature_names(), table.features(0), table.weight(0)), (&["x".to_owned()][..], &[5.0][..], 3.0));
    assert_eq!(table.oracles().collect::<Vec<_>>(), [("big", &[0.0, 1.0][..])]);
    assert_eq!((table.truth(0).unwrap(), frame.ids.unwrap()), (&[1.0, 0.0][..], vec!["u".to_owned()]));
    let path = folder.file("a.jsonl", "{\"softmax\":[1,0],\"crowd\":[\"0\",\"1\"]}");
    let table = read_frame(&path, &named("probs=softmax,labels=crowd")).unwrap().table;
    assert_eq!(table.votes(0).unwrap().counts(), [1, 1]);
    // A prefix may contain another.
    let path = folder.file("b.csv", "p_a,p_b,p_v_a,p_v_b\n1,0,2,1\n");
    assert_eq!(read_frame(&path, &named("probs=p_,votes=p_v_")).unwrap().table.votes(0).unwrap().k(), 3);
    // Named columns must be there.
    for (key, name) in
        [("votes", "n_"), ("truth", "q"), ("features", "z_"), ("id", "key"), ("weight", "mass"), ("labels", "l")]
    {
        let error = read_frame(&path, &named(&format!("probs=p_,{key}={name}"))).unwrap_err().to_string();
        assert!(error.contains(&format!("no column named by {key}={name}")), "{error}");
    }
}

#[test]
fn features_are_named_by_columns_or_prefixes() {
    let folder = Folder::new();
    let header = "prob_a,prob_b,words,amb,amb2,embA,emb1,note";
    let path = folder.file("a.csv", format!("{header}\n1,0,5,6,7,8,9,x\n"));
    let json = "{\"prob_a\":1,\"prob_b\":0,\"words\":5,\"amb\":6,\"amb2\":7,\"embA\":8,\"emb1\":9,\"note\":\"x\"}";
    for path in [&path, &folder.file("a.jsonl", json)] {
        for (columns, names, values) in [
            ("features=words", &["words"][..], &[5.0][..]),
            ("features=words,features=amb", &["words", "amb"], &[5.0, 6.0]),
            ("features=emb", &["A", "1"], &[8.0, 9.0]),
            ("features=emb,features=words", &["words", "A", "1"], &[5.0, 8.0, 9.0]),
        ] {
            let table = read_frame(path, &named(columns)).unwrap().table;
            assert_eq!((table.feature_names(), table.features(0)), (&names.map_owned()[..], values), "{columns}");
            assert_eq!(columns.parse::<Columns>().unwrap().to_string(), columns);
        }
    }
    // The features of a router are found by the same flag; without it the message names the flag.
    let wanted = Some(vec!["amb".to_owned(), "words".to_owned()]);
    let options = ReadOptions { features: wanted.clone(), ..named("features=words,features=amb") };
    assert_eq!(read_frame(&path, &options).unwrap().table.features(0), [6.0, 5.0]);
    let error = read_frame(&path, &ReadOptions { features: wanted, ..ReadOptions::default() }).unwrap_err().to_string();
    assert!(error.contains("no column x_amb") && error.contains("--columns features=amb,features=words"), "{error}");
    // A bad value is named by its column.
    let bad = folder.file("bad.csv", "prob_a,prob_b,words\n1,0,many\n");
    let error = read_frame(&bad, &named("features=words")).unwrap_err().to_string();
    assert!(error.contains("column words: \"many\" is not a number"), "{error}");
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|&name| name.to_owned()).collect()
    }
}

/// Otherwise `features=w` would make the column `words` a feature.
#[test]
fn prefixes_within_a_word_are_refused() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "prob_a,prob_b,words,gpt_a,gpt_b\n1,0,5,0.5,0.5\n");
    for (columns, part) in [
        ("features=w", "no column named by features=w, as the option columns says: words begin with these letters"),
        ("features=words,features=n", "no column named by features=n"),
        ("features=gpt", "give the whole prefix, --columns features=gpt_"),
        ("oracles=g", "another model's predictions are called g<model>_<class>, or g<class>"),
        ("oracles=gpt", "give the whole prefix, --columns oracles=gpt_"),
    ] {
        let error = read_frame(&path, &named(columns)).unwrap_err().to_string();
        assert!(error.contains(part), "{columns}: {error}");
    }
    let table = read_frame(&path, &named("oracles=gpt_")).unwrap().table;
    assert_eq!(table.oracles().collect::<Vec<_>>(), [("gpt", &[0.5, 0.5][..])]);
}

#[test]
fn prefixes_may_end_in_a_space() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "Item ID,score a,score b,votes_a,votes_b\nu,1,0,1,2\n");
    let columns = "probs=score , id = Item ID";
    let frame = read_frame(&path, &named(columns)).unwrap();
    assert_eq!((frame.table.classes(), frame.ids), (&["a", "b"].map_owned()[..], Some(vec!["u".to_owned()])));
    let printed = columns.parse::<Columns>().unwrap().to_string();
    assert_eq!(printed, "probs=score ,id=Item ID");
    assert_eq!(printed.parse::<Columns>().unwrap(), columns.parse().unwrap());
}

/// Another model was logged for some rows only: the message says what to do.
#[test]
fn rows_without_another_models_answer_are_refused_with_advice() {
    let folder = Folder::new();
    let wide = "id,prob_a,prob_b,oracle_llm_a,oracle_llm_b\n1,1,0,0.5,0.5\n2,1,0,,\n";
    let maps = "{\"probs\":[1,0],\"oracles\":{\"llm\":[1,0]}}\n";
    let files = [
        ("a.csv", wide.to_owned()),
        ("null.jsonl", format!("{maps}{{\"probs\":[1,0],\"oracles\":{{\"llm\":null}}}}\n")),
        ("none.jsonl", format!("{maps}{{\"probs\":[1,0]}}\n")),
        ("late.jsonl", format!("{{\"probs\":[1,0]}}\n{maps}")),
    ];
    for (name, text) in files {
        let error = read_frame(folder.file(name, text), &ReadOptions::default()).unwrap_err().to_string();
        for part in ["row 2", "llm", "a route is measured on rows that have answers", "--where"] {
            assert!(error.contains(part) || part == "llm" && name == "late.jsonl", "{name}: {error}");
        }
    }
}

/// In text, a missing number may be written NaN: the message gives the filter that leaves such rows out.
#[test]
fn rows_whose_answer_is_nan_are_left_out_by_the_filter_that_the_message_gives() {
    let folder = Folder::new();
    for missing in ["NaN", "nan"] {
        let text = format!("prob_a,prob_b,oracle_llm_a,oracle_llm_b\n1,0,0.5,0.5\n1,0,{missing},{missing}\n1,0,,\n");
        let path = folder.file("a.csv", text);
        let read = |filters: &[&str]| {
            let filters = filters.iter().map(|filter| filter.parse().unwrap()).collect();
            read_frame(&path, &ReadOptions { filters, ..ReadOptions::default() }).map_err(|error| error.to_string())
        };
        let error = read(&["oracle_llm_a!="]).unwrap_err();
        assert!(error.contains("row 2") && error.contains("--where 'oracle_llm_a!=NaN'"), "{error}");
        let frame = read(&["oracle_llm_a!=", "oracle_llm_a!=NaN"]).unwrap();
        assert_eq!(frame.rows, [1]);
        assert_eq!(frame.without_answers, [("oracle_llm_a".to_owned(), 1), ("oracle_llm_a".to_owned(), 1)]);
    }
}

#[test]
fn invalid_options_are_refused() {
    let error = |text: &str| text.parse::<Columns>().unwrap_err().to_string();
    assert!(error("probs").contains("KEY=NAME"));
    assert!(error("probs=").contains("KEY=NAME"));
    assert!(error("colour=c").contains("unknown key \"colour\""));
    assert!(error("id=a,id=b").contains("id is given twice"));
    assert_eq!("".parse::<Columns>().unwrap(), Columns::default());
    assert!("split".parse::<Filter>().unwrap_err().to_string().contains("COLUMN=VALUE"));
    assert!("=1".parse::<Filter>().is_err());
    assert_eq!("a=b=c".parse::<Filter>().unwrap(), Filter::new("a", "b=c"));
}

#[test]
fn columns_that_decisions_do_not_use_are_not_read() {
    let folder = Folder::new();
    let wide = "prob_a,prob_b,x_age,x_size,oracle_big_a,weight,oracle_version\n1,0,,5,,,v3\n0,1,,6,,,v3\n";
    let maps = "{\"probs\":[1,0],\"features\":{\"age\":null,\"size\":5},\"weight\":null,\"oracles\":{\"big\":null}}\n\
                {\"probs\":[0,1],\"features\":{\"size\":6,\"new\":1},\"weight\":null}\n";
    for (name, text) in [("wide.csv", wide), ("maps.jsonl", maps)] {
        let path = folder.file(name, text);
        let features = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let options = ReadOptions { need: Need::Predictions, features: features(&["size"]), ..ReadOptions::default() };
        let table = read_frame(&path, &options).unwrap().table;
        assert_eq!((table.feature_names(), table.features(1)), (&["size".to_owned()][..], &[6.0][..]), "{name}");
        assert!(!table.has_weights() && table.oracles().next().is_none());
        let options = ReadOptions { features: features(&[]), ..options };
        assert!(read_frame(&path, &options).unwrap().table.feature_names().is_empty());
        let options = ReadOptions { features: features(&["blur"]), ..options };
        let error = read_frame(&path, &options).unwrap_err().to_string();
        assert!(error.contains("no column x_blur, which is needed"), "{error}");
    }
    // In every format the wanted ones are picked, in the order asked for.
    let sample = Sample::new(5);
    let wanted: Vec<String> = sample.feature_names.iter().rev().take(1).cloned().collect();
    let mut files =
        vec![folder.file("a.npz", sample.npz(Precision::Double)), folder.file("a.jsonl", sample.jsonl(Layout::Maps))];
    for nesting in [Nesting::Struct, Nesting::Map] {
        files.push(folder.path(&format!("{nesting:?}.arrow")));
        arrow_file(files.last().unwrap(), &sample.nested_batch(nesting), None);
    }
    for path in files {
        let options = ReadOptions { features: Some(wanted.clone()), ..ReadOptions::default() };
        let (table, whole) = (read_frame(&path, &options).unwrap().table, sample.table());
        assert_eq!(table.feature_names(), wanted, "{}", path.display());
        let last = whole.feature_names().len() - 1;
        (0..5).for_each(|row| assert_eq!(table.features(row), [whole.features(row)[last]]));
    }
}

#[test]
fn oracle_columns_without_a_class_are_ignored() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "prob_a,prob_b,oracle_version\n1,0,v3\n");
    assert!(read_frame(&path, &ReadOptions::default()).unwrap().table.oracles().next().is_none());
    let path = folder.file("a.jsonl", "{\"probs\":[1,0]}\n{\"probs\":[0,1],\"oracle_version\":\"v3\"}\n");
    assert!(read_frame(&path, &ReadOptions::default()).is_ok());
}

#[test]
fn filters_print_as_they_are_typed() {
    for text in ["split=nan", "split=-inf", "split=", "a=b=c", "a!=b", "a<3", "a>=2024-01-31"] {
        let filter: Filter = text.parse().unwrap();
        assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
    }
}

#[test]
fn delimiter_can_be_given() {
    let (folder, sample) = (Folder::new(), Sample::new(5));
    let read = |path: &Path, delimiter: Option<&str>| {
        let delimiter = delimiter.map(|text| text.parse().unwrap());
        read_frame(path, &ReadOptions { delimiter, ..ReadOptions::default() }).map(|frame| frame.table)
    };
    let commas = read(&folder.file("a.csv", sample.text(',')), None).unwrap();
    for (name, between, said) in [
        ("b.csv", ';', Some(";")),
        ("b.csv", ';', Some("semicolon")),
        ("c.csv", '\t', Some("\\t")),
        ("c.csv", '\t', Some("tab")),
        ("d.tsv", '\t', None),
        ("e.tsv", ';', Some(";")),
        ("f.csv", ',', Some(",")),
        ("g.csv", '|', Some("|")),
        ("g.csv", '|', Some("pipe")),
        ("h.csv", '~', Some("~")),
    ] {
        assert_eq!(read(&folder.file(name, sample.text(between)), said).unwrap(), commas, "{name} {said:?}");
    }
    let error = read(&folder.file("b.csv", sample.text(';')), None).unwrap_err().to_string();
    assert!(error.contains("--delimiter ';'"), "{error}");
    // A comma in a name divides the header.
    let error = read(&folder.file("i.csv", "prob_a|prob_b|c, d\n1|0|x\n"), None).unwrap_err().to_string();
    assert!(error.contains("--delimiter '|'"), "{error}");
    let error = read(&folder.file("a.npz", sample.npz(Precision::Double)), Some(";")).unwrap_err().to_string();
    assert!(error.contains("a.npz: is read as npz, which has no delimiter"), "{error}");
    for text in ["", "x", ";;", "3", "\"", "\n", ".", "é"] {
        let error = text.parse::<Delimiter>().unwrap_err().to_string();
        assert!(error.contains("cannot separate values"), "{error}");
    }
    // Annotations have the delimiter of the table, unless their extension shows another.
    let items = folder.file("items.csv", "id;prob_a;prob_b\n1;0.5;0.5\n2;0.25;0.75\n");
    for (name, text) in [("labels.csv", "id;label\n1;a\n2;b\n"), ("labels.tsv", "id\tlabel\n1\ta\n2\tb\n")] {
        let annotations = Some(folder.file(name, text));
        let options = ReadOptions { delimiter: Some(";".parse().unwrap()), annotations, ..ReadOptions::default() };
        assert_eq!(read_frame(&items, &options).unwrap().table.votes(1).unwrap().counts(), [0, 1], "{name}");
    }
}

#[test]
fn unused_numbers_are_reported_if_there_are_no_features() {
    let folder = Folder::new();
    let text = "id,prob_a,prob_b,votes_a,votes_b,f_age,note,f_size,split\n7,1,0,1,0,3,x,,1\n8,0,1,1,0,4,5,2.5,1\n";
    folder.file("a.csv", text);
    let unused = |name: &str, options: &ReadOptions| read_frame(folder.path(name), options).unwrap().unused_numeric;
    assert_eq!(unused("a.csv", &filtered(&["split=1"])), ["f_age", "f_size"]);
    assert_eq!(unused("a.csv", &named("features=f_age")), Vec::<String>::new());
    let decides = ReadOptions { need: Need::Predictions, ..ReadOptions::default() };
    assert_eq!(unused("a.csv", &decides), ["f_age", "f_size", "split"]);
    folder.file("a.jsonl", "{\"probs\":[1,0],\"f_age\":3,\"note\":\"x\",\"list\":[1]}\n");
    assert_eq!(unused("a.jsonl", &decides), ["f_age"]);
    let texts = |name: &str| read_frame(folder.path(name), &decides).unwrap().unused_text;
    assert_eq!((texts("a.csv"), texts("a.jsonl")), (vec!["note".to_owned()], vec!["note".to_owned()]));
    let sample = Sample::new(3);
    parquet(&folder.path("a.parquet"), &sample.wide_batch(false), zstd());
    folder.file("a.npz", sample.npz(Precision::Double));
    // Features that are not wanted are not listed.
    let without = ReadOptions { features: Some(Vec::new()), ..ReadOptions::default() };
    for name in ["a.parquet", "a.npz"] {
        assert_eq!(unused(name, &without), ["split"], "{name}");
        assert_eq!(unused(name, &ReadOptions::default()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn votes_under_another_prefix_are_suggested() {
    let folder = Folder::new();
    let votes = |text: &str| {
        let options = ReadOptions { need: Need::Votes, ..ReadOptions::default() };
        read_frame(folder.file("a.csv", text), &options).unwrap_err().to_string()
    };
    let error = votes("prob_a,prob_b,oracle_m_a,oracle_m_b,n_a,n_b,x_a\n1,0,1,0,2,1,0\n");
    assert!(
        error.contains("no votes") && error.contains("--columns votes=n_, in Python columns={'votes': 'n_'}"),
        "{error}"
    );
    let error = votes("prob_a,prob_b,oracle_m_a,oracle_m_b,n_a\n1,0,1,0,2\n");
    assert!(!error.contains("--columns"), "{error}");
}

/// A whole name of a feature is no prefix of another one.
#[test]
fn missing_features_are_not_named_behind_a_whole_column() {
    let folder = Folder::new();
    let path = folder.file("a.csv", "prob_a,prob_b,words\n1,0,5\n");
    let wanted = Some(["words", "hour"].map_owned().to_vec());
    let error =
        read_frame(&path, &ReadOptions { features: wanted, ..named("features=words") }).unwrap_err().to_string();
    assert!(error.contains("no column hour, which is needed"), "{error}");
}
