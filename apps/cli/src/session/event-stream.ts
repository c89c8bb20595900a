import { ExitCode, Failure } from '../exit-codes.ts'

/** A server-sent event. */
export interface ServerEvent {
  readonly id: string
  readonly type: string
  readonly data: string
}

/** Longest event in characters: servers send some thousands. */
const MAX_CHARS = 1 << 20

/** Yields the events of a stream; `onId` is called with each id, also one without an event. */
export async function* serverEvents(
  chunks: AsyncIterable<Uint8Array>,
  onId: (id: string) => void,
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split(/\r?\n\r?\n/)
    text = blocks.pop()!
    if (text.length > MAX_CHARS)
      throw new Failure('The stream of the server is not understood: an event is too long.', ExitCode.refused)
    for (const block of blocks) {
      const fields = new Map(block.split(/\r?\n/).map(fieldOf))
      const id = fields.get('id')
      if (id !== undefined) onId(id)
      const data = fields.get('data')
      if (data !== undefined) yield { id: id ?? '', type: fields.get('event') ?? 'message', data }
    }
  }
}

/** Returns the name of a line and what follows it; a comment has an empty name. */
function fieldOf(line: string): [string, string] {
  const colon = line.indexOf(':')
  return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
}
