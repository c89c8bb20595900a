/** Returns the data of a read node; null where the server holds null, which the client reads as empty. */
export const dataOrNull = ({ data, isNull }: { data: Uint8Array; isNull: boolean }): Uint8Array | null =>
  isNull ? null : data
