// franz-go's sr runs the story (franz story URL PREFIX STORY.json), reads frames (franz read URL), or is refused what it
// asks for (franz access URL NAME STORY.json ID FRAME).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"strata/clients/story"
)

var ctx = context.Background()

// Of itself the client gives up after five seconds, which a busy machine may need.
var patient = sr.HTTPClient(&http.Client{Timeout: time.Minute})

func main() {
	if os.Args[1] == "access" {
		access(os.Args[2], os.Args[3], story.Load(os.Args[4]), story.MustGet(strconv.Atoi(os.Args[5])))
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
	client      *sr.Client
	url, prefix string
	story       story.Story
}

func clientOf(url string) *sr.Client { return story.MustGet(sr.NewClient(sr.URLs(url), patient)) }

func (t teller) subject(name string) string { return t.prefix + "-" + name }

func avroOf(text json.RawMessage) sr.Schema { return sr.Schema{Schema: string(text)} }

func refusal[T any](value T, err error) any {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return refused.ErrorCode
	}
	return map[string]any{"answered": value, "error": err}
}

func (t teller) register(name string, schema sr.Schema) sr.SubjectSchema {
	return story.MustGet(t.client.CreateSchema(ctx, t.subject(name), schema))
}

func (t teller) tell() {
	first, second := avroOf(t.story.Avro.First), avroOf(t.story.Avro.Second)
	incompatible := avroOf(t.story.Avro.Incompatible)

	made := t.register("avro", first)
	story.Say("register avro", made.ID)
	story.Say("register json", t.register("json", sr.Schema{Schema: string(t.story.JSON), Type: sr.TypeJSON}).ID)
	story.Say("register protobuf", t.register("protobuf", sr.Schema{Schema: t.story.Protobuf, Type: sr.TypeProtobuf}).ID)
	story.Say("look up", story.MustGet(t.client.LookupSchema(ctx, t.subject("avro"), first)).ID)
	story.Say("by id", json.RawMessage(story.MustGet(t.client.SchemaByID(ctx, made.ID)).Schema))
	story.Say("register second", t.register("avro", second).ID)
	story.Say("versions", story.MustGet(t.client.SubjectVersions(ctx, t.subject("avro"))))
	latest := story.MustGet(t.client.SchemaByVersion(ctx, t.subject("avro"), -1))
	story.Say("latest", []int{latest.Version, latest.ID})

	t.register("dependency", avroOf(t.story.References.Dependency))
	dependent := avroOf(t.story.References.Dependent)
	dependent.References = []sr.SchemaReference{{Name: t.story.References.Name, Subject: t.subject("dependency"), Version: 1}}
	t.register("dependent", dependent)
	story.Say("references", story.MustGet(t.client.SchemaByVersion(ctx, t.subject("dependent"), 1)).References)

	story.Say("incompatible", refusal(t.client.CreateSchema(ctx, t.subject("avro"), incompatible)))
	story.Say("unknown subject", refusal(t.client.SchemaByVersion(ctx, t.subject("unknown"), -1)))
	story.Say("unknown version", refusal(t.client.SchemaByVersion(ctx, t.subject("avro"), 99)))
	story.Say("unknown id", refusal(t.client.SchemaByID(ctx, 1<<30)))
	story.Say("compatible", []bool{
		story.MustGet(t.client.CheckCompatibility(ctx, t.subject("avro"), -1, second)).Is,
		story.MustGet(t.client.CheckCompatibility(ctx, t.subject("avro"), -1, incompatible)).Is,
	})
	t.settings(first)
	t.names(first)

	t.register("gone", first)
	story.Say("soft delete", story.MustGet(t.client.DeleteSubject(ctx, t.subject("gone"), sr.SoftDelete)))
	story.Say("after soft delete", refusal(t.client.SchemaByVersion(ctx, t.subject("gone"), -1)))
	story.Say("hard delete", story.MustGet(t.client.DeleteSubject(ctx, t.subject("gone"), sr.HardDelete)))

	// CreateSchema looks for its own subject among those of the id, which come with their context in front.
	inside := clientOf(t.url + "/contexts/." + t.prefix)
	id := story.MustGet(inside.RegisterSchema(ctx, "inner", first, -1, -1))
	story.Say("context", []int{id, story.MustGet(inside.SchemaByVersion(ctx, "inner", -1)).Version})
	t.frames(made.ID)
}

func (t teller) settings(schema sr.Schema) {
	config, mode := t.subject("config"), t.subject("mode")
	unset := t.client.Compatibility(ctx, config)[0]
	story.Say("config unset", refusal(unset.Level, unset.Err))
	story.Must(t.client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, config)[0].Err)
	story.Say("config", t.client.Compatibility(ctx, config)[0].Level.String())
	set := t.client.SetMode(ctx, sr.ModeReadOnly, mode)[0]
	story.Must(set.Err)
	got := t.client.Mode(ctx, mode)[0]
	story.Say("read-only", []any{set.Mode.String(), got.Mode.String(), refusal(t.client.CreateSchema(ctx, mode, schema))})
}

func (t teller) names(schema sr.Schema) {
	for _, odd := range t.story.Odd {
		t.register("odd-"+odd, schema)
	}
	found := []string{}
	for _, name := range story.MustGet(t.client.Subjects(ctx)) {
		if strings.HasPrefix(name, t.subject("odd-")) {
			found = append(found, name)
		}
	}
	sort.Strings(found)
	story.Say("odd subjects", found)
}

func (t teller) frames(id int) {
	serde := sr.NewSerde()
	schema := avro.MustParse(string(t.story.Avro.First))
	serde.Register(id, story.Order{}, sr.EncodeFn(func(value any) ([]byte, error) { return avro.Marshal(schema, value) }))
	story.SayFrame("avro", story.MustGet(serde.Encode(t.story.Value)))
	id = story.MustGet(t.client.LookupSchema(ctx, t.subject("json"), sr.Schema{Schema: string(t.story.JSON), Type: sr.TypeJSON})).ID
	plain := sr.NewSerde()
	plain.Register(id, story.Order{}, sr.EncodeFn(json.Marshal))
	story.SayFrame("json", story.MustGet(plain.Encode(t.story.Value)))

	id = story.MustGet(t.client.LookupSchema(ctx, t.subject("protobuf"), sr.Schema{Schema: t.story.Protobuf, Type: sr.TypeProtobuf})).ID
	story.SayFrame("protobuf", t.message(id, story.OrderDescriptor(), 0))
	id = t.register("nested", sr.Schema{Schema: t.story.Nested, Type: sr.TypeProtobuf}).ID
	story.SayFrame("nested", t.message(id, story.NestedDescriptor(), 1, 1))
}

func (t teller) message(id int, descriptor protoreflect.MessageDescriptor, path ...int) []byte {
	indexed := sr.NewSerde()
	indexed.Register(id, story.Order{}, sr.Index(path...), sr.EncodeFn(func(value any) ([]byte, error) {
		return proto.Marshal(value.(story.Order).Message(descriptor))
	}))
	return story.MustGet(indexed.Encode(t.story.Value))
}

func read(client *sr.Client) {
	story.Frames(func(frame story.Frame, bytes []byte) story.Order {
		var header sr.ConfluentHeader
		id, payload, err := header.DecodeID(bytes)
		story.Must(err)
		var order story.Order
		switch frame.Format {
		case "json":
			story.Must(json.Unmarshal(payload, &order))
			return order
		case "protobuf", "nested":
			var path []int
			path, payload, err = header.DecodeIndex(payload, 2)
			story.Must(err)
			descriptor := map[string]protoreflect.MessageDescriptor{
				"[0]": story.OrderDescriptor(), "[1 1]": story.NestedDescriptor(),
			}[fmt.Sprint(path)]
			message := dynamicpb.NewMessage(descriptor)
			story.Must(proto.Unmarshal(payload, message))
			return story.OrderOf(message)
		}
		schema := avro.MustParse(story.MustGet(client.SchemaByID(ctx, id)).Schema)
		story.Must(avro.Unmarshal(schema, payload, &order))
		return order
	})
}

// The client has no deserializer that asks the registry, so the frame is not used.
func access(url, name string, told story.Story, id int) {
	as := func(user, password string) *sr.Client {
		return story.MustGet(sr.NewClient(sr.URLs(url), patient, sr.BasicAuth(user, password)))
	}
	open, closed := "open-"+name, "closed-"+name
	first, second := avroOf(told.Avro.First), avroOf(told.Avro.Second)

	made := story.MustGet(as("owner", told.Passwords.Right).CreateSchema(ctx, open, first))
	story.Say("registered", made.ID)
	reader := as("reader", told.Passwords.Right)
	story.SayFields("read", story.MustGet(reader.SchemaByID(ctx, made.ID)).Schema)

	wrong := as(name, told.Passwords.Wrong)
	story.Say("wrong password", shown(wrong.SchemaByVersion(ctx, open, -1)))
	story.Say("wrong password, registration", shown(wrong.CreateSchema(ctx, open, second)))
	story.Say("id", shown(reader.SchemaByID(ctx, id)))
	story.Say("latest", shown(reader.SchemaByVersion(ctx, closed, -1)))
	story.Say("registration", shown(reader.CreateSchema(ctx, closed, first)))
	story.Say("next version", shown(reader.CreateSchema(ctx, open, second)))
	story.AwaitGrant()
	story.MustGet(reader.SchemaByID(ctx, id))
	latest := story.MustGet(reader.SchemaByVersion(ctx, closed, -1))
	story.Say("after the grant", []int{latest.Version, latest.ID})
}

func shown[T any](value T, err error) any {
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		return story.Refusal{Status: refused.StatusCode, Code: refused.ErrorCode, Text: err.Error()}
	}
	return map[string]any{"answered": value, "error": fmt.Sprint(err)}
}
