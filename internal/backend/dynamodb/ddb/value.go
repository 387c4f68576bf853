package ddb

import (
	"encoding/binary"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is what a table holds under a key.
type Item = map[string]types.AttributeValue

// Text is a string as a value.
func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Bytes are bytes as a value, which DynamoDB sorts as unsigned.
func Bytes(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// Flag is a bool as a value.
func Flag(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

// Int is a number as a value.
func Int(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Uint is an unsigned number as a value: DynamoDB keeps 38 digits.
func Uint(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

// TextOf returns a string attribute; "" = there is none.
func TextOf(i Item, name string) string {
	if v, ok := i[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// BytesOf returns a binary attribute; nil = there is none.
func BytesOf(i Item, name string) []byte {
	if v, ok := i[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

// IntOf returns a number attribute; 0 = there is none.
func IntOf(i Item, name string) int64 {
	if v, ok := i[name].(*types.AttributeValueMemberN); ok {
		n, _ := strconv.ParseInt(v.Value, 10, 64) // only we write them
		return n
	}
	return 0
}

// UintOf is IntOf without a sign.
func UintOf(i Item, name string) uint64 {
	if v, ok := i[name].(*types.AttributeValueMemberN); ok {
		n, _ := strconv.ParseUint(v.Value, 10, 64)
		return n
	}
	return 0
}

// FlagOf returns a bool attribute; false = there is none.
func FlagOf(i Item, name string) bool {
	v, ok := i[name].(*types.AttributeValueMemberBOOL)
	return ok && v.Value
}

// Sortable is a number in the order of unsigned bytes.
func Sortable(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63) }

// SortableOf is the inverse of Sortable, of the first bytes of b.
func SortableOf(b []byte) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63)
}

// The key of the table of state, and the attribute that its items expire by.
const (
	Partition = "pk"
	Sort      = "sk"
	TTL       = "ttl" // Unix seconds
)

// StateKey is a key in the table of state. A sort key has at least one byte.
func StateKey(partition string, sort []byte) Item {
	if len(sort) == 0 {
		sort = []byte{0}
	}
	return Item{Partition: Text(partition), Sort: Bytes(sort)}
}
