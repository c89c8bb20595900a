import type { HttpRequest } from '@zabra/runtime'

/** Longest body of a request in bytes. */
const MAX_BODY_BYTES = 64 * 1024

/**
 * Reads a body with a JSON object. Resolves to one of its members, a number from 0 to `max`; to `byDefault` without a body or the
 * member; and to undefined when the body is something else, has another member, or is longer than 64 KiB.
 */
export async function numberIn(
  body: HttpRequest['body'],
  member: string,
  { max, byDefault }: { readonly max: number; readonly byDefault: number | undefined },
): Promise<number | undefined> {
  const object = await readObject(body, [member])
  if (object === undefined) return undefined
  const value = object[member] ?? byDefault
  return typeof value === 'number' && value >= 0 && value <= max ? value : undefined
}

/**
 * Reads a body with a JSON object. Resolves to it, to an empty one without a body, and to undefined when it is something else or has a
 * member beside `known`: a caller that misspells `dryRun` would otherwise get the change.
 */
export async function readObject(
  body: HttpRequest['body'],
  known?: readonly string[],
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const text = await readBody(body)
  if (text === undefined) return undefined
  try {
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const isKnown = known === undefined || Object.keys(value).every((name) => known.includes(name))
    return isKnown ? (value as Record<string, unknown>) : undefined
  } catch {
    // The caller says what was expected.
    return undefined
  }
}

/** Reads a short body; returns undefined when it is longer than `MAX_BODY_BYTES`. */
async function readBody(body: HttpRequest['body']): Promise<string | undefined> {
  const decoder = new TextDecoder()
  let [text, length] = ['', 0]
  for await (const chunk of body) {
    length += chunk.length
    if (length > MAX_BODY_BYTES) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}
