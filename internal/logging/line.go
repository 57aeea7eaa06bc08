package logging

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Line returns a line of a log in JSON, with the end of the line, as the loggers of this package write it. A negative
// rank is left out.
func Line(level zapcore.Level, rank int, text string) []byte {
	var fields []zapcore.Field
	if rank >= 0 {
		fields = append(fields, zap.Int("rank", rank))
	}
	entry := zapcore.Entry{Level: level, Time: time.Now(), Message: text}
	line, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).EncodeEntry(entry, fields)
	if err != nil { // text and a number can always be encoded
		panic(err)
	}
	defer line.Free()
	return append([]byte(nil), line.Bytes()...)
}

// IsLine says whether a line of a rank's output, without its end, is one that its logger wrote in JSON.
func IsLine(line []byte, rank int) bool {
	var entry struct {
		Level *zapcore.Level `json:"level"`
		Rank  *int           `json:"rank"`
		Text  *string        `json:"msg"`
	}
	return json.Unmarshal(line, &entry) == nil && entry.Level != nil && entry.Text != nil && entry.Rank != nil &&
		*entry.Rank == rank
}
