import type { Bytes } from '@zabra/client/core'
import type { Naming } from '../handles/types.ts'

/** What a revoker says. */
export interface RevokeRequest {
  /** Who asks. */
  readonly by?: string
  /** What for, in words. */
  readonly reason?: string
  /** Milliseconds after which it will take the right by force, or give up. */
  readonly graceMs?: number
}

const requestWords: Readonly<Record<Naming, string>> = {
  recipe: 'unlock',
  curator: '__REVOKE__',
  kazoo: 'unlock',
}

/** The request as it is written into the znode. Curator knows its bare word only. */
export function writeRequest(naming: Naming, request: RevokeRequest): Bytes {
  const told = naming === 'recipe' && Object.values(request).some((value) => value !== undefined)
  return new TextEncoder().encode(
    told ? `${requestWords.recipe} ${JSON.stringify(request)}` : requestWords[naming],
  )
}

/** The request that a znode holds, if it holds one. Details that cannot be read are left out: the word is what counts. */
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
