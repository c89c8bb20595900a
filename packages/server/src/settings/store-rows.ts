import { row, type Group } from './row.ts'
import { oneOf, optional, password, text } from './value-types.ts'

type Store = 'keyStore' | 'trustStore'

/**
 * Returns what makes the rows of the files with keys and certificates for a kind of ports, whose keys begin with `prefix`. `isOwn` says
 * that Apache ZooKeeper has none of them.
 */
export function storeRows(group: Group, prefix: string, { isOwn = false } = {}) {
  const of = (store: Store, name: string) => {
    const key = `${prefix}.${store}.${name}`
    const origin = isOwn ? ({ isOwn: true } as const) : { property: `zookeeper.${key}` }
    return { group, key, ...origin, defaultValue: undefined }
  }
  const file = { type: optional(text('a file')), isPath: true } as const
  return {
    location: (store: Store, defaultText: string, description: string) =>
      row({
        ...of(store, 'location'),
        ...file,
        ...(store === 'keyStore' ? { isSecretFile: true } : {}),
        defaultText,
        description,
      }),
    password: (store: Store) =>
      row({
        ...of(store, 'password'),
        type: optional(password()),
        isSecret: true,
        defaultText: 'none',
        description: 'Password of that file.',
      }),
    passwordPath: (store: Store) =>
      row({
        ...of(store, 'passwordPath'),
        ...file,
        isSecretFile: true,
        defaultText: 'none',
        description: `File with the password, which takes precedence over \`${prefix}.${store}.password\`.`,
      }),
    type: (
      store: Store,
      description: string,
      defaultText = 'by the suffix `.pem` or `.p12`, else by the first bytes',
    ) =>
      row({
        ...of(store, 'type'),
        type: optional(oneOf('PEM', 'PKCS12', 'JKS', 'BCFKS')),
        defaultText,
        description,
      }),
  }
}
