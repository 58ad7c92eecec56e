package api

import _ "embed"

//go:embed glidepath-contract.json
var contract string

//go:embed openapi.yaml
var openAPI string

// Contract returns the contract as getContract serves it: JSON, the same bytes
// in every build of one commit. The slice belongs to the caller.
func Contract() []byte { return []byte(contract) }

// OpenAPI returns openapi.yaml as it was when the program was built. The slice
// belongs to the caller.
func OpenAPI() []byte { return []byte(openAPI) }
