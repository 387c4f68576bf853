package kafka

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
)

// TestAPromiseThatNobodyGotIsNoPromise: whoever promises hears that there is no topic.
func TestAPromiseThatNobodyGotIsNoPromise(t *testing.T) {
	_, cfg := fake(t)
	producer, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	if err := producer.SendWatermark(t.Context(), 7, clicks.Ended); !errors.Is(err, ErrNoTopic) {
		t.Errorf("without a topic: %v, want ErrNoTopic", err)
	}
}

// TestAFieldOfAnotherKindIsPassedOver: what a later version writes under a number of ours, in
// a kind that this one never has, changes nothing that was read.
func TestAFieldOfAnotherKindIsPassedOver(t *testing.T) {
	const promise = 2 // in Record, of api/clicks.proto
	want := InstanceMark{Instance: 9, Watermark: time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC).UnixMilli()}
	b := promiseRecord(want)
	field, kind, n := protowire.ConsumeTag(b)
	inner, m := protowire.ConsumeBytes(b[n:])
	if field != promise || kind != protowire.BytesType || m < 0 || n+m != len(b) {
		t.Fatalf("a promise is field %d of kind %d, with %d of %d bytes", field, kind, n+m, len(b))
	}
	for number := range protowire.Number(20) {
		later := protowire.AppendTag(append([]byte(nil), inner...), number+1, protowire.Fixed32Type)
		later = binary.LittleEndian.AppendUint32(later, 1<<31+5)
		record := protowire.AppendBytes(protowire.AppendTag(nil, promise, protowire.BytesType), later)
		got, err := ReadRecord(record, new(clicklog.Event))
		if err != nil || got == nil || *got != want {
			t.Errorf("with a fixed32 of number %d: %+v, %v; want %+v", number+1, got, err, want)
		}
	}
}
