// Serves HashiCorp Vault's transit engine, without the rest of Vault, for the tests of the driver `hcvault`.
//
//	transit ADDRESS TOKEN
//
// It checks the token, knows no policies, and keeps its keys in memory.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/hashicorp/vault/builtin/logical/transit"
	"github.com/hashicorp/vault/sdk/logical"
)

const mount = "/v1/transit/"

type engine struct {
	backend logical.Backend
	storage logical.Storage
	token   string
}

func answer(w http.ResponseWriter, status int, name string, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{name: content})
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Vault-Token") != e.token {
		answer(w, http.StatusForbidden, "errors", []string{"permission denied"})
		return
	}
	if !strings.HasPrefix(r.URL.Path, mount) {
		answer(w, http.StatusNotFound, "errors", []string{"no handler for route"})
		return
	}
	request := &logical.Request{
		Operation: logical.ReadOperation,
		Path:      strings.TrimPrefix(r.URL.Path, mount),
		Storage:   e.storage,
		Data:      map[string]any{},
	}
	if r.Method != http.MethodGet {
		request.Operation = logical.UpdateOperation
		_ = json.NewDecoder(r.Body).Decode(&request.Data)
		checked, exists, _ := e.backend.HandleExistenceCheck(r.Context(), request)
		if checked && !exists {
			request.Operation = logical.CreateOperation
		}
	}
	response, err := e.backend.HandleRequest(r.Context(), request)
	switch {
	case response != nil && response.IsError():
		answer(w, http.StatusBadRequest, "errors", []string{response.Error().Error()})
	case err != nil:
		answer(w, http.StatusInternalServerError, "errors", []string{err.Error()})
	case response == nil:
		answer(w, http.StatusOK, "data", map[string]any{})
	default:
		answer(w, http.StatusOK, "data", response.Data)
	}
}

func main() {
	config := logical.TestBackendConfig()
	storage := &logical.InmemStorage{}
	config.StorageView = storage
	backend, err := transit.Factory(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	if err := backend.Initialize(context.Background(), &logical.InitializationRequest{Storage: storage}); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, &engine{backend, storage, os.Args[2]}))
}
