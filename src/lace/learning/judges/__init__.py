"""Who says what a picture shows: a function, an ONNX network, CLIP, or a probe on one's own pictures."""
