// Networks as the page stores them: base64 of a safetensors file.

/** The bytes of a base64 text. */
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** A safetensors file as what Network takes: its tensors, and the settings of its header. */
export function networkOf(bytes, kinds) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const header = JSON.parse(metadata.oneofmany);
  const tensors = {};
  for (const [name, { shape, data_offsets: [first, end] }] of Object.entries(entries)) {
    const start = bytes.byteOffset + 8 + length;
    tensors[name] = { shape, data: new Float32Array(bytes.buffer.slice(start + first, start + end)) };
  }
  return { tensors, kinds, steps: header.network.test_steps, task: header.task, size: header.size };
}
