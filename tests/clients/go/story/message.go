package story

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Message returns the value as the message of the story's .proto file.
func (order Order) Message() proto.Message {
	message := dynamicpb.NewMessage(OrderDescriptor())
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
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label, JsonName: &name}
	}
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("order.proto"), Package: proto.String("acme"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Order"), Field: []*descriptorpb.FieldDescriptorProto{
			field("id", 1, descriptorpb.FieldDescriptorProto_TYPE_STRING),
			field("amount", 2, descriptorpb.FieldDescriptorProto_TYPE_INT32),
			field("note", 3, descriptorpb.FieldDescriptorProto_TYPE_STRING),
		}}},
	}
	return MustGet(protodesc.NewFile(file, nil)).Messages().ByName("Order")
}
