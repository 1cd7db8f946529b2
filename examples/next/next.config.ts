// Menshen keeps its records in a native module, which cannot be bundled.
export default { serverExternalPackages: ['menshen'] }
