"""What derivatives through impacts are for: periodic orbits and their branches, Lyapunov exponents, identification."""
