import type { SessionId } from '../core/types.ts'

/** A session id as it is written everywhere: unsigned, hexadecimal. */
export const formatSessionId = (id: SessionId): string => `0x${BigInt.asUintN(64, id).toString(16)}`
