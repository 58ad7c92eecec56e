package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"text/template"
)

//go:embed operations.go.tmpl
var tableTemplate string

// renderTable renders the Go source of the operation table.
func renderTable(s *spec) ([]byte, error) {
	t, err := template.New("operations").Option("missingkey=error").Parse(tableTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the table's template: %w", err)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, s); err != nil {
		return nil, fmt.Errorf("render the table: %w", err)
	}
	source, err := format.Source(buf.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format the table: %w", err)
	}
	return source, nil
}

// In returns the parameters sent in one place: path, query or header.
func (o operation) In(place string) []param {
	var params []param
	for _, p := range o.Params {
		if p.In == place {
			params = append(params, p)
		}
	}
	return params
}
