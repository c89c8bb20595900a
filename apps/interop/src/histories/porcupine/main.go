// Checks histories of registers, locks, sets and sessions with Porcupine. Reads one JSON document from standard input and
// prints one JSON object: the name of each history and whether it is legal ("Ok", "Illegal", "Unknown" after the time limit).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const timeLimit = 60 * time.Second

// Operation is one operation of a history. Err is the error code of ZooKeeper; Unknown says that no reply was received, so that
// the operation may have taken effect at any later time, or never.
type Operation struct {
	Client  int      `json:"client"`
	Call    int64    `json:"call"`
	Return  int64    `json:"return"`
	Op      string   `json:"op"`
	Path    string   `json:"path"`
	Value   string   `json:"value"`
	Version int      `json:"version"`
	Index   int      `json:"index"`
	Err     int      `json:"err"`
	Unknown bool     `json:"unknown"`
	Got     string   `json:"got"`
	GotVers int      `json:"gotVersion"`
	Members []string `json:"members"`
}

// Write is a committed change of a register, in the order of its zxid.
type Write struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// History is a list of operations with the model that judges it. Writes is present for sessions only.
type History struct {
	Name       string      `json:"name"`
	Model      string      `json:"model"`
	Operations []Operation `json:"operations"`
	Writes     []Write     `json:"writes"`
}

const (
	noNode     = -101
	badVersion = -103
	nodeExists = -110
)

type node struct {
	exists  bool
	value   string
	version int
}

// A znode with data and version: a register with compare-and-set, and a lock that create takes and delete releases.
var nodeModel = porcupine.Model{
	Init: func() interface{} { return node{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		before, op := state.(node), input.(Operation)
		after, err := applyToNode(before, op)
		if op.Unknown {
			return true, after
		}
		if err != op.Err {
			return false, before
		}
		switch {
		case op.Op == "get" && err == 0:
			return op.Got == before.value && op.GotVers == before.version, before
		case op.Op == "set" && err == 0:
			return op.GotVers == after.version, after
		}
		return true, after
	},
}

func applyToNode(before node, op Operation) (node, int) {
	if op.Op == "create" {
		if before.exists {
			return before, nodeExists
		}
		return node{exists: true, value: op.Value}, 0
	}
	if !before.exists {
		return before, noNode
	}
	if op.Op == "get" {
		return before, 0
	}
	if op.Version != -1 && op.Version != before.version {
		return before, badVersion
	}
	if op.Op == "delete" {
		return node{}, 0
	}
	return node{exists: true, value: op.Value, version: before.version + 1}, 0
}

// A set of at most 64 elements, named 0 to 63: a znode with a child for each.
var setModel = porcupine.Model{
	Init: func() interface{} { return uint64(0) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		before, op := state.(uint64), input.(Operation)
		if op.Op == "members" {
			return bits(op.Members) == before, before
		}
		bit := bits([]string{op.Value})
		after, err := before|bit, 0
		switch {
		case op.Op == "add" && before&bit != 0:
			err = nodeExists
		case op.Op == "remove" && before&bit == 0:
			after, err = before, noNode
		case op.Op == "remove":
			after = before &^ bit
		}
		return op.Unknown || err == op.Err, after
	},
}

func bits(elements []string) uint64 {
	var set uint64
	for _, element := range elements {
		var bit uint
		fmt.Sscanf(element, "%d", &bit)
		set |= 1 << bit
	}
	return set
}

// The registers as one session sees them. The state is the number of writes that its server has applied. The session's own
// operations are in their order; the writes of others may be applied at any time, in the order of their zxids.
func sessionModel(writes []Write) porcupine.Model {
	states := make([]map[string]string, len(writes)+1)
	states[0] = map[string]string{}
	for index, write := range writes {
		next := make(map[string]string, len(states[index])+1)
		for path, value := range states[index] {
			next[path] = value
		}
		next[write.Path] = write.Value
		states[index+1] = next
	}
	return porcupine.Model{
		Init: func() interface{} { return 0 },
		Step: func(state, input, output interface{}) (bool, interface{}) {
			applied, op := state.(int), input.(Operation)
			if op.Op == "apply" {
				return op.Index == applied, applied + 1
			}
			return states[applied][op.Path] == op.Got, applied
		},
	}
}

func main() {
	var histories []History
	if err := json.NewDecoder(os.Stdin).Decode(&histories); err != nil {
		fmt.Fprintln(os.Stderr, "expected a list of histories as JSON:", err)
		os.Exit(2)
	}
	results := map[string]porcupine.CheckResult{}
	for _, history := range histories {
		model := nodeModel
		switch history.Model {
		case "set":
			model = setModel
		case "session":
			model = sessionModel(history.Writes)
		}
		operations := make([]porcupine.Operation, len(history.Operations))
		for index, op := range history.Operations {
			operations[index] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Output: nil, Return: op.Return}
		}
		results[history.Name] = porcupine.CheckOperationsTimeout(model, operations, timeLimit)
	}
	json.NewEncoder(os.Stdout).Encode(results)
}
