// Package translate turns a model.Edge into what Envoy is told: one listener,
// one route configuration and the clusters. One file a filter or subject. It
// decides nothing that the model does not say, has no state, and gives the
// same bytes for the same model.
package translate
