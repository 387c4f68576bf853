package telemetry

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
)

// LogSDK sends what the OpenTelemetry SDK has to say to a log. The SDK has one place
// for it in a process, so that only the program itself calls this, before NewTraces.
func LogSDK(log *slog.Logger) {
	otel.SetLogger(logr.New(sdkLog{log}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(context.Background(), "traces", slog.Any("err", err))
	}))
}

// sdkLog takes the sentences of the SDK without the errors and values beside them,
// which may be those of settings that hold keys: CheckTraces says what is wrong there.
type sdkLog struct{ log *slog.Logger }

var _ logr.LogSink = sdkLog{}

// sdkWarning is the level of the SDK's warnings; above it are its ways.
const sdkWarning = 1

func (sdkLog) Init(logr.RuntimeInfo)  {}
func (sdkLog) Enabled(level int) bool { return level <= sdkWarning }

func (l sdkLog) Info(_ int, msg string, _ ...any)    { l.say(msg) }
func (l sdkLog) Error(_ error, msg string, _ ...any) { l.say(msg) }
func (l sdkLog) WithValues(...any) logr.LogSink      { return l }
func (l sdkLog) WithName(string) logr.LogSink        { return l }

func (l sdkLog) say(msg string) {
	l.log.WarnContext(context.Background(), "traces", slog.String("sdk", msg))
}
