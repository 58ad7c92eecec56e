package life

import (
	"crypto/md5" //nolint:gosec // Tekton's names are made with it; nothing is protected by it
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	longestName = 63
	hashLength  = 2 * md5.Size
	headLength  = longestName - hashLength
)

// ChildName is the name Tekton gives to what belongs to parent: parent and suffix joined, and when that is too long the
// parent cut and a hash put in.
func ChildName(parent, suffix string) string {
	switch {
	case len(parent)+len(suffix) <= longestName:
		return parent + suffix
	case len(suffix) < headLength:
		return parent[:headLength-len(suffix)] + hash(parent) + suffix
	default:
		name := parent[:min(headLength, len(parent))] + hash(parent+suffix)
		return strings.TrimRight(name+suffix[:longestName-len(name)], "-.")
	}
}

func hash(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// podName is the pod of the taskRun's attempt, counted from zero.
func podName(taskRun string, attempt int) string {
	if attempt == 0 {
		return ChildName(taskRun, "-pod")
	}
	return ChildName(taskRun, "-pod-retry"+strconv.Itoa(attempt))
}

// ContainerID is the container that runs the step in the pod.
func ContainerID(namespace, pod, step string) string {
	return "containerd://" + digest(namespace, pod, step)
}

// stepName is the step's name, or the one Tekton gives to a step without.
func stepName(step Step, index int) string {
	if step.Name == "" {
		return "unnamed-" + strconv.Itoa(index)
	}
	return step.Name
}
