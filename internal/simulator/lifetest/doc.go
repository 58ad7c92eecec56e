// Package lifetest checks that what happens to a PipelineRun or a TaskRun could have happened under Tekton. It is for tests.
package lifetest
