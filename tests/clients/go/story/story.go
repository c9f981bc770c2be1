// Package story holds the code that the programs share: the story's file, its lines, and frames to read.
package story

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Order is the value of the story.
type Order struct {
	ID     string `json:"id" avro:"id"`
	Amount int32  `json:"amount" avro:"amount"`
	Note   string `json:"note" avro:"note"`
}

// Story holds the schemas, the value and the names that every client gets.
type Story struct {
	Passwords struct{ Right, Wrong string }
	Value     Order
	Avro      struct{ First, Second, Incompatible json.RawMessage }
	JSON      json.RawMessage
	// Protobuf and Nested are texts of .proto files; the message of the second is acme.Cart.Order.
	Protobuf, Nested string
	References       struct {
		Name                  string
		Dependency, Dependent json.RawMessage
	}
	Odd []string
}

// Frame is one line to read; Header names the schema, if the record's header does.
type Frame struct{ Step, Format, Topic, Header, Hex string }

// Load reads the story's file.
func Load(path string) Story {
	var told Story
	Must(json.Unmarshal(MustGet(os.ReadFile(path)), &told))
	return told
}

// Say prints one step as a line of JSON.
func Say(step string, got any) {
	fmt.Println(string(MustGet(json.Marshal(map[string]any{"step": step, "got": got}))))
}

// Refusal is what an error of a client shows; Status is 0 if the client does not keep it.
type Refusal struct {
	Status int    `json:"status,omitempty"`
	Code   int    `json:"code"`
	Text   string `json:"text"`
}

// AwaitGrant says that the refusals are over, and waits until standard input ends.
func AwaitGrant() {
	Say("waiting", nil)
	MustGet(io.ReadAll(os.Stdin))
}

// SayFields prints the fields of an Avro record.
func SayFields(step, schema string) {
	var record struct{ Fields json.RawMessage }
	Must(json.Unmarshal([]byte(schema), &record))
	Say(step, record.Fields)
}

// SayFrame prints the bytes of a serializer.
func SayFrame(format string, frame []byte) { Say("frame "+format, hex.EncodeToString(frame)) }

// SayHeader prints a serializer's header and bytes.
func SayHeader(format string, header, payload []byte) {
	Say("frame "+format+"-header", hex.EncodeToString(header)+":"+hex.EncodeToString(payload))
}

// Frames calls read with each frame on standard input, and prints the returned value.
func Frames(read func(frame Frame, bytes []byte) Order) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var frame Frame
		Must(json.Unmarshal(lines.Bytes(), &frame))
		Say(frame.Step, read(frame, MustGet(hex.DecodeString(frame.Hex))))
	}
	Must(lines.Err())
}

// Must ends the program with an error.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// MustGet returns a value, or ends the program with an error.
func MustGet[T any](value T, err error) T {
	Must(err)
	return value
}
