// Package feed owns what the viewers of one namespace see: its PipelineRuns and
// TaskRuns now, and each change to them from then on.
//
// A Feed holds the objects as the cluster last gave them and a topic of changes,
// each written down once for all viewers. It learns of changes by one watch a
// kind, or by a list every two seconds where the cluster grants no watch.
//
// A viewer's place is a Position: how far it has seen each kind, in
// resourceVersions. It means the same on every replica, so that a viewer may
// come back to any of them: see Feed.Join.
package feed
