//! schema_registry_converter runs its part of the story (`story URL PREFIX STORY.json`), reads frames (`read URL`), or is
//! refused what it asks for (`access URL NAME STORY.json ID FRAME`).

use std::io::BufRead;

use schema_registry_converter::avro_common::get_supplied_schema;
use schema_registry_converter::blocking::avro::{AvroDecoder, AvroEncoder};
use schema_registry_converter::blocking::json::{JsonDecoder, JsonEncoder};
use schema_registry_converter::blocking::proto_decoder::ProtoDecoder;
use schema_registry_converter::blocking::proto_encoder::ProtoEncoder;
use schema_registry_converter::blocking::schema_registry::{
    get_all_subjects, get_all_versions, get_schema_by_id, get_schema_by_subject, is_compatible_schema, post_schema,
    SrSettings,
};
use schema_registry_converter::error::SRCError;
use schema_registry_converter::schema_registry_common::{
    SchemaIdHeader, SchemaType, SubjectNameStrategy, SuppliedReference, SuppliedSchema,
};
use serde_json::{json, Value};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let settings = SrSettings::new(arguments[2].clone());
    if arguments[1] == "read" {
        return read(settings);
    }
    let text = std::fs::read_to_string(&arguments[4]).unwrap();
    let story = serde_json::from_str(&text).unwrap();
    if arguments[1] == "access" {
        return access(&arguments[2], &arguments[3], &story, arguments[5].parse().unwrap(), &unhex(&arguments[6]));
    }
    tell(settings, &arguments[2], &arguments[3], &story);
}

fn say(step: &str, got: Value) {
    println!("{}", json!({"step": step, "got": got}));
}

fn avro(schema: &Value) -> SuppliedSchema {
    SuppliedSchema::new(Some("acme.Order".into()), SchemaType::Avro, schema.to_string())
}

/// Return the registry's error code from the client's error.
fn refusal<T>(answered: Result<T, SRCError>) -> Value {
    let Err(error) = answered else { return json!("answered") };
    let told = format!("{error:?}");
    let code = [40401, 40402, 40403, 40901, 42201].into_iter().find(|code| told.contains(&code.to_string()));
    code.map_or(json!(told), |code| json!(code))
}

fn tell(settings: SrSettings, url: &str, prefix: &str, story: &Value) {
    let subject = |name: &str| format!("{prefix}-{name}");
    let register = |name: &str, schema| post_schema(&settings, subject(name), schema);
    let latest = |name: &str| {
        let strategy = SubjectNameStrategy::RecordNameStrategy(subject(name));
        get_schema_by_subject(&settings, &strategy)
    };
    let (first, second) = (avro(&story["avro"]["first"]), avro(&story["avro"]["second"]));
    let incompatible = avro(&story["avro"]["incompatible"]);

    let id = register("avro", first.clone()).unwrap().id;
    say("register avro", json!(id));
    let of = |kind, text: String| SuppliedSchema::new(None, kind, text);
    say("register json", json!(register("json", of(SchemaType::Json, story["json"].to_string())).unwrap().id));
    let text = story["protobuf"].as_str().unwrap().to_string();
    say("register protobuf", json!(register("protobuf", of(SchemaType::Protobuf, text)).unwrap().id));
    say("by id", serde_json::from_str(&get_schema_by_id(id, &settings).unwrap().schema).unwrap());
    say("register second", json!(register("avro", second.clone()).unwrap().id));
    say("versions", json!(get_all_versions(&settings, subject("avro")).unwrap()));
    let newest = latest("avro").unwrap();
    say("latest", json!([newest.version, newest.id]));

    let told = &story["references"];
    let dependency = SuppliedReference::new(
        told["name"].as_str().unwrap().into(),
        subject("dependency"),
        told["dependency"].to_string(),
    );
    register("dependent", avro(&told["dependent"]).with_references(vec![dependency])).unwrap();
    let found = latest("dependent").unwrap().references;
    let listed = found.iter().map(|each| json!({"name": each.name, "subject": each.subject, "version": each.version}));
    say("references", listed.collect());

    say("incompatible", refusal(register("avro", incompatible.clone())));
    say("unknown subject", refusal(latest("unknown")));
    say("unknown id", refusal(get_schema_by_id(1 << 30, &settings)));
    let check = |schema| is_compatible_schema(&settings, subject("avro"), schema).unwrap();
    say("compatible", json!([check(second), check(incompatible)]));

    // The client escapes only the slash, and no other character that a path cannot hold.
    for odd in ["a/b", "two words", "größe", "語"] {
        register(&format!("odd-{odd}"), first.clone()).unwrap();
    }
    let mut odd = get_all_subjects(&settings).unwrap();
    odd.retain(|name| name.starts_with(&subject("odd-")));
    odd.sort();
    say("odd subjects", json!(odd));

    let inside = SrSettings::new(format!("{url}/contexts/.{prefix}"));
    let inner = post_schema(&inside, "inner".into(), first).unwrap().id;
    say("context", json!([inner, get_all_versions(&inside, "inner".into()).unwrap()[0]]));
    frames(settings, prefix, story);
}

fn frames(settings: SrSettings, prefix: &str, story: &Value) {
    let value = &story["value"];
    let parsed = apache_avro::Schema::parse(&story["avro"]["first"]).unwrap();
    let strategy =
        SubjectNameStrategy::TopicNameStrategyWithSchema(format!("{prefix}-frame-avro"), false, get_supplied_schema(&parsed));
    let fields = vec![
        ("id", apache_avro::types::Value::String(value["id"].as_str().unwrap().into())),
        ("amount", apache_avro::types::Value::Int(value["amount"].as_i64().unwrap() as i32)),
        ("note", apache_avro::types::Value::String(value["note"].as_str().unwrap().into())),
    ];
    let encoder = AvroEncoder::new(settings.clone());
    say("frame avro", json!(hex(&encoder.encode(fields.clone(), &strategy).unwrap())));
    say_header("avro", encoder.encode_with_header_id(fields, &strategy, false).unwrap());

    let supplied = SuppliedSchema::new(None, SchemaType::Json, story["json"].to_string());
    let strategy = SubjectNameStrategy::TopicNameStrategyWithSchema(format!("{prefix}-frame-json"), false, supplied);
    let encoder = JsonEncoder::new(settings.clone());
    say("frame json", json!(hex(&encoder.encode(value, &strategy).unwrap())));
    say_header("json", encoder.encode_with_header_id(value, &strategy, false).unwrap());

    let encoder = ProtoEncoder::new(settings);
    let of = |format: &str| {
        let text = story[format].as_str().unwrap().into();
        let supplied = SuppliedSchema::new(None, SchemaType::Protobuf, text);
        SubjectNameStrategy::TopicNameStrategyWithSchema(format!("{prefix}-frame-{format}"), false, supplied)
    };
    let (whole, nested) = (of("protobuf"), of("nested"));
    say("frame protobuf", json!(hex(&encoder.encode_json(value, "acme.Order", &whole).unwrap())));
    say("frame nested", json!(hex(&encoder.encode_json(value, "acme.Cart.Order", &nested).unwrap())));
    say_header("protobuf", encoder.encode_json_with_header_id(value, "acme.Order", &whole, false).unwrap());
}

fn say_header(format: &str, (payload, header): (Vec<u8>, SchemaIdHeader)) {
    say(&format!("frame {format}-header"), json!(format!("{}:{}", hex(&header.value), hex(&payload))));
}

fn read(settings: SrSettings) {
    let binary = AvroDecoder::new(settings.clone());
    let text = JsonDecoder::new(settings.clone());
    let messages = ProtoDecoder::new(settings);
    for line in std::io::stdin().lock().lines() {
        let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let bytes = unhex(frame["hex"].as_str().unwrap());
        let header = frame["header"].as_str().map(unhex);
        let header = header.as_deref();
        let value: Value = match frame["format"].as_str().unwrap() {
            "avro" => binary.decode_with_header_id(header, Some(&bytes)).unwrap().value.try_into().unwrap(),
            "json" => text.decode_with_header_id(header, Some(&bytes)).unwrap().unwrap().value,
            _ => order(&messages.decode_with_header_id(header, Some(&bytes)).unwrap()),
        };
        say(frame["step"].as_str().unwrap(), value);
    }
}

fn access(url: &str, name: &str, story: &Value, id: u32, frame: &[u8]) {
    let client = |user: &str, password: &str| {
        let password = story["passwords"][password].as_str().unwrap();
        SrSettings::new_builder(url.into()).set_basic_authorization(user, Some(password)).build().unwrap()
    };
    let (open, closed) = (format!("open-{name}"), format!("closed-{name}"));
    let (first, second) = (avro(&story["avro"]["first"]), avro(&story["avro"]["second"]));
    let latest = |settings: &SrSettings, subject: &String| {
        get_schema_by_subject(settings, &SubjectNameStrategy::RecordNameStrategy(subject.clone()))
    };

    let made = post_schema(&client("owner", "right"), open.clone(), first.clone()).unwrap().id;
    say("registered", json!(made));
    let reader = client("reader", "right");
    let read: Value = serde_json::from_str(&get_schema_by_id(made, &reader).unwrap().schema).unwrap();
    say("read", read["fields"].clone());
    let decoder = AvroDecoder::new(reader.clone());

    let wrong = client(name, "wrong");
    say("wrong password", shown(latest(&wrong, &open)));
    say("wrong password, registration", shown(post_schema(&wrong, open.clone(), second.clone())));
    say("id", shown(get_schema_by_id(id, &reader)));
    say("latest", shown(latest(&reader, &closed)));
    say("registration", shown(post_schema(&reader, closed.clone(), first)));
    say("next version", shown(post_schema(&reader, open, second)));
    say("frame", shown(decoder.decode(Some(frame))));
    say("waiting", json!(null));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    get_schema_by_id(id, &reader).unwrap();
    decoder.remove_errors_from_cache(); // the decoder keeps errors until it is told to forget them
    decoder.decode(Some(frame)).unwrap();
    let found = latest(&reader, &closed).unwrap();
    say("after the grant", json!([found.version, found.id]));
}

/// Return what the client's error shows: status and code are in its text alone.
fn shown<T>(answered: Result<T, SRCError>) -> Value {
    answered.map_or_else(|error| json!({"text": error.to_string()}), |_| json!({"answered": true}))
}

fn order(value: &prost_reflect::Value) -> Value {
    let message = value.as_message().unwrap();
    let field = |name| message.get_field_by_name(name).unwrap().into_owned();
    json!({"id": field("id").as_str(), "amount": field("amount").as_i32(), "note": field("note").as_str()})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
