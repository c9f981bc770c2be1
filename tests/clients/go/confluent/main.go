// confluent-kafka-go's schemaregistry runs the story (confluent story URL PREFIX STORY.json), reads frames (confluent read
// URL), or is refused what it asks for (confluent access URL NAME STORY.json ID FRAME).
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/protobuf"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"strata/clients/story"
)

func main() {
	if os.Args[1] == "access" {
		id, frame := story.MustGet(strconv.Atoi(os.Args[5])), story.MustGet(hex.DecodeString(os.Args[6]))
		access(os.Args[2], os.Args[3], story.Load(os.Args[4]), id, frame)
		return
	}
	client := clientOf(os.Args[2])
	if os.Args[1] == "read" {
		read(client)
		return
	}
	teller{client, os.Args[2], os.Args[3], story.Load(os.Args[4])}.tell()
}

type teller struct {
	client      schemaregistry.Client
	url, prefix string
	story       story.Story
}

func clientOf(url string) schemaregistry.Client {
	config := schemaregistry.NewConfig(url)
	if strings.Contains(url, "@") {
		config.BasicAuthCredentialsSource = "URL"
	}
	return story.MustGet(schemaregistry.NewClient(config))
}

func (t teller) subject(name string) string { return t.prefix + "-" + name }

func avroOf(text json.RawMessage) schemaregistry.SchemaInfo {
	return schemaregistry.SchemaInfo{Schema: string(text), SchemaType: "AVRO"}
}

func refusal[T any](value T, err error) any {
	var refused *rest.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return map[string]any{"answered": value, "error": err}
}

func (t teller) register(name string, schema schemaregistry.SchemaInfo) int {
	return story.MustGet(t.client.Register(t.subject(name), schema, false))
}

func (t teller) tell() {
	first, second := avroOf(t.story.Avro.First), avroOf(t.story.Avro.Second)
	incompatible := avroOf(t.story.Avro.Incompatible)

	id := t.register("avro", first)
	story.Say("register avro", id)
	story.Say("register json", t.register("json", schemaregistry.SchemaInfo{Schema: string(t.story.JSON), SchemaType: "JSON"}))
	story.Say("register protobuf", t.register("protobuf", schemaregistry.SchemaInfo{Schema: t.story.Protobuf, SchemaType: "PROTOBUF"}))
	story.Say("look up", story.MustGet(clientOf(t.url).GetID(t.subject("avro"), first, false)))
	story.Say("by id", json.RawMessage(story.MustGet(clientOf(t.url).GetBySubjectAndID(t.subject("avro"), id)).Schema))
	story.Say("register second", t.register("avro", second))
	story.Say("versions", story.MustGet(t.client.GetAllVersions(t.subject("avro"))))
	latest := story.MustGet(t.client.GetLatestSchemaMetadata(t.subject("avro")))
	story.Say("latest", []int{latest.Version, latest.ID})

	t.register("dependency", avroOf(t.story.References.Dependency))
	dependent := avroOf(t.story.References.Dependent)
	dependent.References = []schemaregistry.Reference{{Name: t.story.References.Name, Subject: t.subject("dependency"), Version: 1}}
	t.register("dependent", dependent)
	story.Say("references", story.MustGet(clientOf(t.url).GetSchemaMetadata(t.subject("dependent"), 1)).References)

	story.Say("incompatible", refusal(t.client.Register(t.subject("avro"), incompatible, false)))
	story.Say("unknown subject", refusal(t.client.GetLatestSchemaMetadata(t.subject("unknown"))))
	story.Say("unknown version", refusal(t.client.GetSchemaMetadata(t.subject("avro"), 99)))
	story.Say("unknown id", refusal(t.client.GetBySubjectAndID(t.subject("avro"), 1<<30)))
	story.Say("compatible", []bool{
		story.MustGet(t.client.TestCompatibility(t.subject("avro"), 2, second)),
		story.MustGet(t.client.TestSubjectCompatibility(t.subject("avro"), incompatible)),
	})
	story.Say("config unset", refusal(t.client.GetCompatibility(t.subject("config"))))
	story.MustGet(t.client.UpdateCompatibility(t.subject("config"), schemaregistry.Full))
	level := story.MustGet(t.client.GetCompatibility(t.subject("config")))
	story.Say("config", level.String())
	t.names(first)

	t.register("gone", first)
	story.Say("soft delete", story.MustGet(t.client.DeleteSubject(t.subject("gone"), false)))
	story.Say("after soft delete", refusal(clientOf(t.url).GetLatestSchemaMetadata(t.subject("gone"))))
	story.Say("hard delete", story.MustGet(t.client.DeleteSubject(t.subject("gone"), true)))

	inner := story.MustGet(clientOf(t.url+"/contexts/."+t.prefix).RegisterFullResponse("inner", first, false))
	story.Say("context", []int{inner.ID, inner.Version})
	t.frames(first)
}

func (t teller) names(schema schemaregistry.SchemaInfo) {
	for _, odd := range t.story.Odd {
		t.register("odd-"+odd, schema)
	}
	found := []string{}
	for _, name := range story.MustGet(t.client.GetAllSubjects()) {
		if strings.HasPrefix(name, t.subject("odd-")) {
			found = append(found, name)
		}
	}
	sort.Strings(found)
	story.Say("odd subjects", found)
}

// The default strategy asks for associations before every first use of a topic.
func (t teller) frames(schema schemaregistry.SchemaInfo) {
	t.register("frame-avro-value", schema)
	binary := avrov2.NewSerializerConfig()
	binary.AutoRegisterSchemas, binary.UseLatestVersion = false, true
	ofAvro := story.MustGet(avrov2.NewSerializer(t.client, serde.ValueSerde, binary))
	t.frame("avro", ofAvro, &ofAvro.BaseSerializer, &t.story.Value)

	t.register("frame-json-value", schemaregistry.SchemaInfo{Schema: string(t.story.JSON), SchemaType: "JSON"})
	text := jsonschema.NewSerializerConfig()
	text.AutoRegisterSchemas, text.UseLatestVersion = false, true
	ofJSON := story.MustGet(jsonschema.NewSerializer(t.client, serde.ValueSerde, text))
	t.frame("json", ofJSON, &ofJSON.BaseSerializer, &t.story.Value)

	ofProtobuf := story.MustGet(protobuf.NewSerializer(t.client, serde.ValueSerde, protobuf.NewSerializerConfig()))
	nested := t.story.Value.Message(story.NestedDescriptor())
	story.SayFrame("nested", story.MustGet(ofProtobuf.Serialize(t.subject("frame-nested"), nested)))
	t.frame("protobuf", ofProtobuf, &ofProtobuf.BaseSerializer, t.story.Value.Message(story.OrderDescriptor()))
}

// Print the frame of a value, then the same with the schema in a header.
func (t teller) frame(format string, serializer serde.Serializer, base *serde.BaseSerializer, value any) {
	topic := t.subject("frame-" + format)
	story.SayFrame(format, story.MustGet(serializer.Serialize(topic, value)))
	base.SchemaIDSerializer = serde.HeaderSchemaIDSerializer
	headers, payload, err := serializer.SerializeWithHeaders(topic, value)
	story.Must(err)
	story.SayHeader(format, headers[0].Value, payload)
}

func read(client schemaregistry.Client) {
	binary := story.MustGet(avrov2.NewDeserializer(client, serde.ValueSerde, avrov2.NewDeserializerConfig()))
	text := story.MustGet(jsonschema.NewDeserializer(client, serde.ValueSerde, jsonschema.NewDeserializerConfig()))
	messages := story.MustGet(protobuf.NewDeserializer(client, serde.ValueSerde, protobuf.NewDeserializerConfig()))
	for _, descriptor := range []protoreflect.MessageDescriptor{story.OrderDescriptor(), story.NestedDescriptor()} {
		story.Must(messages.ProtoRegistry.RegisterMessage(dynamicpb.NewMessageType(descriptor)))
	}
	story.Frames(func(frame story.Frame, bytes []byte) story.Order {
		var order story.Order
		var headers []kafka.Header
		if frame.Header != "" {
			headers = []kafka.Header{{Key: serde.ValueSchemaIDHeader, Value: story.MustGet(hex.DecodeString(frame.Header))}}
		}
		switch frame.Format {
		case "avro":
			story.Must(binary.DeserializeWithHeadersInto(frame.Topic, headers, bytes, &order))
		case "json":
			story.Must(text.DeserializeWithHeadersInto(frame.Topic, headers, bytes, &order))
		case "protobuf", "nested":
			message := story.MustGet(messages.DeserializeWithHeaders(frame.Topic, headers, bytes))
			order = story.OrderOf(message.(proto.Message))
		}
		return order
	})
}

func access(url, name string, told story.Story, id int, frame []byte) {
	as := func(user, password string) schemaregistry.Client {
		return story.MustGet(schemaregistry.NewClient(schemaregistry.NewConfigWithBasicAuthentication(url, user, password)))
	}
	open, closed := "open-"+name, "closed-"+name
	first, second := avroOf(told.Avro.First), avroOf(told.Avro.Second)

	made := story.MustGet(as("owner", told.Passwords.Right).Register(open, first, false))
	story.Say("registered", made)
	reader := as("reader", told.Passwords.Right)
	story.SayFields("read", story.MustGet(reader.GetBySubjectAndID(open, made)).Schema)
	deserializer := story.MustGet(avrov2.NewDeserializer(reader, serde.ValueSerde, avrov2.NewDeserializerConfig()))
	decode := func() (story.Order, error) {
		var order story.Order
		return order, deserializer.DeserializeInto("closed", frame, &order)
	}

	wrong := as(name, told.Passwords.Wrong)
	story.Say("wrong password", shown(wrong.GetLatestSchemaMetadata(open)))
	story.Say("wrong password, registration", shown(wrong.Register(open, second, false)))
	story.Say("id", shown(reader.GetBySubjectAndID(closed, id)))
	story.Say("latest", shown(reader.GetLatestSchemaMetadata(closed)))
	story.Say("registration", shown(reader.Register(closed, first, false)))
	story.Say("next version", shown(reader.Register(open, second, false)))
	story.Say("frame", shown(decode()))
	story.AwaitGrant()
	story.MustGet(reader.GetBySubjectAndID(closed, id))
	story.MustGet(decode())
	latest := story.MustGet(reader.GetLatestSchemaMetadata(closed))
	story.Say("after the grant", []int{latest.Version, latest.ID})
}

func shown[T any](value T, err error) any {
	var refused *rest.Error
	if errors.As(err, &refused) {
		return story.Refusal{Code: refused.Code, Text: err.Error()}
	}
	return map[string]any{"answered": value, "error": fmt.Sprint(err)}
}
