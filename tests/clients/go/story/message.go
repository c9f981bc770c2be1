package story

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Message returns the value as a message of that type.
func (order Order) Message(descriptor protoreflect.MessageDescriptor) proto.Message {
	message := dynamicpb.NewMessage(descriptor)
	fields := message.Descriptor().Fields()
	message.Set(fields.ByName("id"), protoreflect.ValueOfString(order.ID))
	message.Set(fields.ByName("amount"), protoreflect.ValueOfInt32(order.Amount))
	message.Set(fields.ByName("note"), protoreflect.ValueOfString(order.Note))
	return message
}

// OrderOf returns the value in such a message.
func OrderOf(message proto.Message) Order {
	read := message.ProtoReflect()
	fields := read.Descriptor().Fields()
	return Order{
		ID:     read.Get(fields.ByName("id")).String(),
		Amount: int32(read.Get(fields.ByName("amount")).Int()),
		Note:   read.Get(fields.ByName("note")).String(),
	}
}

// OrderDescriptor describes the message of the story's .proto file.
func OrderDescriptor() protoreflect.MessageDescriptor {
	return fileOf("order.proto", order()).ByName("Order")
}

// NestedDescriptor describes the message inside another one, which is the second of its file.
func NestedDescriptor() protoreflect.MessageDescriptor {
	cart := &descriptorpb.DescriptorProto{
		Name: proto.String("Cart"), NestedType: []*descriptorpb.DescriptorProto{withID("Line"), order()},
	}
	return fileOf("cart.proto", withID("Other"), cart).ByName("Cart").Messages().ByName("Order")
}

func fileOf(name string, messages ...*descriptorpb.DescriptorProto) protoreflect.MessageDescriptors {
	file := &descriptorpb.FileDescriptorProto{
		Name: &name, Package: proto.String("acme"), Syntax: proto.String("proto3"), MessageType: messages,
	}
	return MustGet(protodesc.NewFile(file, nil)).Messages()
}

func order() *descriptorpb.DescriptorProto {
	message := withID("Order")
	message.Field = append(message.Field,
		field("amount", 2, descriptorpb.FieldDescriptorProto_TYPE_INT32),
		field("note", 3, descriptorpb.FieldDescriptorProto_TYPE_STRING),
	)
	return message
}

func withID(name string) *descriptorpb.DescriptorProto {
	id := field("id", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING)
	return &descriptorpb.DescriptorProto{Name: &name, Field: []*descriptorpb.FieldDescriptorProto{id}}
}

func field(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
	label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label, JsonName: &name}
}
