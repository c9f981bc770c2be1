// The life of a Terraform resource for schemas, over the client that such a provider uses: the resource has a subject, a
// schema, its type, references, a compatibility level and whether a destruction is final.
//
// usage: terraform plan|apply|destroy URL < resources.json; plan prints the subjects that differ.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/riferrei/srclient"
)

type resource struct {
	Subject    string               `json:"subject"`
	Schema     string               `json:"schema"`
	Type       srclient.SchemaType  `json:"schema_type"`
	Level      string               `json:"compatibility_level"`
	HardDelete bool                 `json:"hard_delete"`
	References []srclient.Reference `json:"references"`
}

// differs says whether the registry has something else than a resource, or nothing at all.
func differs(client *srclient.SchemaRegistryClient, wanted resource) bool {
	found, err := client.GetLatestSchema(wanted.Subject)
	if err != nil || !same(found.Schema(), wanted.Schema) || len(found.References()) != len(wanted.References) {
		return true
	}
	for number, reference := range found.References() {
		if reference != wanted.References[number] {
			return true
		}
	}
	if wanted.Level == "" {
		return false
	}
	level, err := client.GetCompatibilityLevel(wanted.Subject, true)
	return err != nil || level.String() != wanted.Level
}

// same compares schemas as values if both are JSON, and as texts otherwise.
func same(left, right string) bool {
	var one, other any
	if json.Unmarshal([]byte(left), &one) != nil || json.Unmarshal([]byte(right), &other) != nil {
		return left == right
	}
	return reflect.DeepEqual(one, other)
}

func apply(client *srclient.SchemaRegistryClient, wanted resource) {
	if wanted.Level != "" {
		_, err := client.ChangeSubjectCompatibilityLevel(wanted.Subject, srclient.CompatibilityLevel(wanted.Level))
		check(err)
	}
	_, err := client.CreateSchema(wanted.Subject, wanted.Schema, wanted.Type, wanted.References...)
	check(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	var resources []resource
	check(json.NewDecoder(os.Stdin).Decode(&resources))
	client := srclient.NewSchemaRegistryClient(os.Args[2])
	client.CachingEnabled(false)
	for number := range resources {
		switch os.Args[1] {
		case "plan":
			if differs(client, resources[number]) {
				fmt.Println(resources[number].Subject)
			}
		case "apply":
			if differs(client, resources[number]) {
				apply(client, resources[number])
			}
		case "destroy":
			gone := resources[len(resources)-1-number]
			check(client.DeleteSubject(gone.Subject, gone.HardDelete))
		}
	}
}
