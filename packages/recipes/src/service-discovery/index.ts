export { InstanceIdConflictError, ServiceDiscovery } from './service-discovery.ts'
export type {
  ServiceDiscoveryOptions,
  ServiceRegistration,
  ServiceRegisterOptions,
} from './service-discovery.ts'
export type { Instance, NewInstance, PayloadCodec, ServiceType, UriSpec } from './instance.ts'
export { ServiceProvider } from './provider.ts'
export type { ProviderOptions } from './provider.ts'
export type { DownPolicy } from './down.ts'
export { strategies, type Strategy } from './strategies.ts'
export { uriOf, uriSpec } from './uri-spec.ts'
