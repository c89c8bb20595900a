import type { Bytes } from '@zabra/client/core'
import type { Naming } from '../handles/types.ts'

/** A request to release a lock. */
export interface RevokeRequest {
  /** The client that asks, for the holder. */
  readonly by?: string | undefined
  /** Why, for the holder. */
  readonly reason?: string | undefined
  /** Milliseconds after which the revoker deletes the znode by force, or gives up. */
  readonly graceMs?: number | undefined
}

const requestWords: Readonly<Record<Naming, string>> = {
  recipe: 'unlock',
  curator: '__REVOKE__',
  kazoo: 'unlock',
}

/** Encodes a request as written into the znode. Curator knows only its bare word. */
export function writeRequest(naming: Naming, request: RevokeRequest): Bytes {
  const hasDetails = naming === 'recipe' && Object.values(request).some((value) => value !== undefined)
  return new TextEncoder().encode(
    hasDetails ? `${requestWords.recipe} ${JSON.stringify(request)}` : requestWords[naming],
  )
}

/** Decodes the request in a znode, if there is one. Unreadable details are ignored: the word is what counts. */
export function readRequest(data: Bytes): RevokeRequest | undefined {
  const text = new TextDecoder().decode(data)
  const word = ['unlock', '__REVOKE__'].find((known) => text === known || text.startsWith(`${known} `))
  return word === undefined ? undefined : detailsOf(text.slice(word.length))
}

function detailsOf(text: string): RevokeRequest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return {}
  }
  if (typeof value !== 'object' || value === null) return {}
  const { by, reason, graceMs } = value as Record<string, unknown>
  return {
    ...(typeof by === 'string' ? { by } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(typeof graceMs === 'number' ? { graceMs } : {}),
  }
}
