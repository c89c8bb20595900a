import type { SessionId } from '../types.ts'
import type { Session } from './types.ts'

/** The bucket of a session that is in none. */
export const NO_BUCKET = -1

/** Returns a session in no bucket, which nothing has used yet. */
export const newSession = (id: SessionId, timeout: number, deadline: number, isLocal: boolean): Session => ({
  id,
  timeout,
  deadline,
  isClosing: false,
  bucket: NO_BUCKET,
  previous: undefined,
  next: undefined,
  isLocal,
  owner: undefined,
  userProof: undefined,
  isTouched: false,
})
