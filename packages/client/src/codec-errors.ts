import { codecError, type ErrorContext } from './errors.ts'
import type { Bytes, Codec } from './types.ts'

/** Encodes a value. Throws a `CodecError` when the codec throws. */
export function encode<T>(codec: Codec<T>, value: T, context: ErrorContext): Bytes {
  try {
    return codec.encode(value)
  } catch (error) {
    throw codecError('ENCODE_FAILED', error, context)
  }
}

/** Decodes the data of a znode. Throws a `CodecError` when the codec throws. */
export function decode<T>(codec: Codec<T>, data: Bytes, context: ErrorContext): T {
  try {
    return codec.decode(data)
  } catch (error) {
    throw codecError('DECODE_FAILED', error, context)
  }
}

/** Returns the codec with a `CodecError` for everything that it throws, for calls that use it in many places. */
export const withCodecErrors = <T>(codec: Codec<T>, context: ErrorContext): Codec<T> => ({
  encode: (value) => encode(codec, value, context),
  decode: (data) => decode(codec, data, context),
})
